package verdict

import (
	"container/list"
	"sync"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// DefaultLimit is the number of verdicts that a Cache remembers; a few large ones
// count more than once. One takes about half a kilobyte.
const DefaultLimit = 1 << 17

// maxTables bounds the number of signatures, whatever their verdicts: a cluster
// with few nodes has few verdicts for each.
const maxTables = 1 << 10

// Cache has the tables of all profiles. Create it with New. It is safe for
// concurrent use.
type Cache struct {
	limit int64

	mutex sync.Mutex
	// tables has *entry elements, the one that was used last in front.
	tables list.List
	byKey  map[Key]*list.Element
}

// Key says which verdicts belong together.
type Key struct {
	Signature problem.Signature
	// Profile has its own options.
	Profile string
	// Avoided numbers the sets of devices that are avoided.
	Avoided uint64
	// Nobody says that the devices are looked at as if nobody held any.
	Nobody bool
}

type entry struct {
	key   Key
	table *Table
}

// New returns an empty Cache. limit is the number of verdicts above which the
// tables that have not been used for the longest time are dropped; the one in
// use is never dropped, so that a single table may have more.
func New(limit int) *Cache {
	return &Cache{limit: int64(limit), byKey: make(map[Key]*list.Element)}
}

// Table returns the table for a key. A scheduling attempt asks once for each of
// its problems, not for each node.
func (c *Cache) Table(key Key) *Table {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	element := c.byKey[key]
	if element == nil {
		element = c.tables.PushFront(&entry{key: key, table: &Table{}})
		c.byKey[key] = element
	} else {
		c.tables.MoveToFront(element)
	}
	c.trim()
	return element.Value.(*entry).table
}

// trim drops tables while there are too many verdicts. What is added to a
// dropped table goes with the attempt that still uses it.
func (c *Cache) trim() {
	size := c.size()
	for c.tables.Len() > 1 && (size > c.limit || c.tables.Len() > maxTables) {
		oldest := c.tables.Remove(c.tables.Back()).(*entry)
		delete(c.byKey, oldest.key)
		size -= oldest.table.size.Load()
	}
}

// Len returns the number of verdicts that are remembered, as New counts them.
func (c *Cache) Len() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return int(c.size())
}

func (c *Cache) size() int64 {
	var size int64
	for element := c.tables.Front(); element != nil; element = element.Next() {
		size += element.Value.(*entry).table.size.Load()
	}
	return size
}

// ForgetNode drops the verdicts for a node that was deleted. It only saves
// memory.
func (c *Cache) ForgetNode(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for element := c.tables.Front(); element != nil; element = element.Next() {
		element.Value.(*entry).table.forget(name)
	}
}
