/* daemon_record.c - opens the flight recorder, and counts what it does. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "flight/flight.h"

struct dv_flight_metrics {
    struct dv_flight *flight;
    struct dv_flight_stats told;
    struct dv_counter *records;
    struct dv_counter *bytes;
    struct dv_counter *lost_queue;
    struct dv_counter *lost_disk;
    struct dv_gauge *is_failing;
};

static void collect(void *ctx)
{
    struct dv_flight_metrics *metrics = ctx;
    struct dv_flight_stats now = dv_flight_stats(metrics->flight);
    const struct dv_flight_stats *told = &metrics->told;

    dv_counter_add(metrics->records, now.n_records - told->n_records);
    dv_counter_add(metrics->bytes, now.n_bytes - told->n_bytes);
    dv_counter_add(metrics->lost_queue, now.n_lost_queue - told->n_lost_queue);
    dv_counter_add(metrics->lost_disk, now.n_lost_disk - told->n_lost_disk);
    dv_gauge_set(metrics->is_failing, now.is_failing ? 1 : 0);
    metrics->told = now;
}

static struct dv_flight_metrics *new_metrics(struct dv_metrics *registry, struct dv_flight *flight)
{
    static const char *const reasons[] = {"reason"};
    static const struct dv_family_spec records = {
        .name = "davit_record_written_total",
        .help = "Records that were written to the recording",
    };
    static const struct dv_family_spec bytes = {
        .name = "davit_record_written_bytes_total",
        .help = "Bytes that were written to the recording",
    };
    static const struct dv_family_spec lost = {
        .name = "davit_record_lost_total",
        .help = "Records that are missing in the recording: the queue was full, or the disk failed",
        .labels = reasons,
        .n_labels = DV_COUNT(reasons),
    };
    static const struct dv_family_spec failing = {
        .name = "davit_record_failing",
        .help = "1 while the recording cannot be written",
    };
    struct dv_flight_metrics *metrics = DV_ALLOC(struct dv_flight_metrics);
    struct dv_family *by_reason = dv_metrics_add_counter(registry, &lost);

    metrics->flight = flight;
    metrics->records = dv_family_counter(dv_metrics_add_counter(registry, &records), NULL);
    metrics->bytes = dv_family_counter(dv_metrics_add_counter(registry, &bytes), NULL);
    metrics->lost_queue = dv_family_counter(by_reason, &DV_STR("queue"));
    metrics->lost_disk = dv_family_counter(by_reason, &DV_STR("disk"));
    metrics->is_failing = dv_family_gauge(dv_metrics_add_gauge(registry, &failing), NULL);
    dv_metrics_add_collector(registry, collect, metrics);
    return metrics;
}

bool dv_daemon_open_flight(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    const struct dv_flight_options flight = {
        .dir = options->record,
        .file_bytes_max = options->record_file_bytes,
        .n_files_max = options->record_files,
        .blanks = options->record_blanks,
        .about =
            dv_str_printf(daemon->arena, "davitd " DV_VERSION " on %.*s, kubelet directory %.*s",
                          DV_FMT(options->node_name), DV_FMT(options->kubelet_dir)),
    };

    if (options->record.n == 0)
        return true;
    daemon->flight = dv_flight_open(daemon->loop, &flight, err);
    if (!daemon->flight)
        return dv_wrap(err, "--record");
    daemon->flight_metrics = new_metrics(dv_daemon_metrics(daemon), daemon->flight);
    return true;
}

struct dv_grpc_observer *dv_daemon_observer(const struct dv_daemon *daemon)
{
    return daemon->flight ? dv_flight_observer(daemon->flight) : NULL;
}

void dv_daemon_forget_flight(struct dv_daemon *daemon)
{
    dv_metrics_remove_collector(dv_daemon_metrics(daemon), collect, daemon->flight_metrics);
    free(daemon->flight_metrics);
    daemon->flight_metrics = NULL;
}
