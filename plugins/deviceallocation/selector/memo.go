package selector

import (
	"hash/maphash"
	"sync"
)

const (
	// memoShards spreads the parallel Filter calls over several locks.
	memoShards = 16
	// maxVerdictsPerShard bounds the memory of one expression. A full shard is
	// emptied: expressions with that many verdicts read a unique value such as
	// a UUID, and for those no choice of victims would be better.
	maxVerdictsPerShard = 4096
)

type memo[V any] struct {
	seed   maphash.Seed
	shards [memoShards]memoShard[V]
}

type memoShard[V any] struct {
	mutex    sync.RWMutex
	verdicts map[string]V
}

func (m *memo[V]) init() {
	m.seed = maphash.MakeSeed()
	for i := range m.shards {
		m.shards[i].verdicts = make(map[string]V)
	}
}

func (m *memo[V]) shard(key []byte) *memoShard[V] {
	return &m.shards[maphash.Bytes(m.seed, key)%memoShards]
}

func (m *memo[V]) get(key []byte) (V, bool) {
	shard := m.shard(key)
	shard.mutex.RLock()
	defer shard.mutex.RUnlock()
	known, ok := shard.verdicts[string(key)]
	return known, ok
}

func (m *memo[V]) put(key []byte, v V) {
	shard := m.shard(key)
	shard.mutex.Lock()
	defer shard.mutex.Unlock()
	if len(shard.verdicts) >= maxVerdictsPerShard {
		clear(shard.verdicts)
	}
	shard.verdicts[string(key)] = v
}
