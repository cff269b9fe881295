//go:build linux

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// schedulerMetrics is where a scheduler with the shipped arguments serves them.
const schedulerMetrics = "https://127.0.0.1:10259/metrics"

// PrintMetrics prints what the kubelets and the scheduler have counted since they
// were started last.
func (c *Cluster) PrintMetrics(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "METRIC\tWHERE\tVALUE")
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		text, err := c.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(name).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("read metrics of the kubelet of %s: %w", name, err)
		}
		if err := printMetrics(table, name, text, "dra_"); err != nil {
			return err
		}
	}
	text, err := c.schedulerMetrics(ctx)
	if err != nil {
		return fmt.Errorf("read metrics of the scheduler: %w", err)
	}
	if err := printMetrics(table, "scheduler", text, "device_scheduler_"); err != nil {
		return err
	}
	return table.Flush()
}

func (c *Cluster) schedulerMetrics(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, schedulerMetrics, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.RESTConfig().BearerToken)
	// The scheduler signs its own certificate. Nobody else can be at this address.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", schedulerMetrics, response.Status)
	}
	return io.ReadAll(response.Body)
}

// printMetrics prints those with a prefix, one line for each set of labels.
func printMetrics(w io.Writer, where string, text []byte, prefix string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("parse metrics of %s: %w", where, err)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, metric := range families[name].Metric {
			fmt.Fprintf(w, "%s%s\t%s\t%s\n", name, labels(metric), where, value(metric))
		}
	}
	return nil
}

func labels(metric *dto.Metric) string {
	var pairs []string
	for _, label := range metric.Label {
		pairs = append(pairs, label.GetName()+"="+label.GetValue())
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func value(metric *dto.Metric) string {
	switch {
	case metric.Counter != nil:
		return fmt.Sprint(metric.Counter.GetValue())
	case metric.Gauge != nil:
		return fmt.Sprint(metric.Gauge.GetValue())
	case metric.Histogram != nil:
		h := metric.Histogram
		return fmt.Sprintf("%d times, on average %.3g", h.GetSampleCount(), h.GetSampleSum()/float64(max(h.GetSampleCount(), 1)))
	default:
		return "of a kind that is not shown"
	}
}
