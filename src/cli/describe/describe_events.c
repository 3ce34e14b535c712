/* describe_events.c - the events of an object, for davit describe. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"

/* Old and new ways to report differ in where the last time stands. */
struct dv_time dv_event_last_seen(const struct dv_api_event *event)
{
    if (event->series)
        return event->series->last_observed_time;
    if (event->last_timestamp.is_set)
        return event->last_timestamp;
    return event->event_time;
}

int64_t dv_event_count(const struct dv_api_event *event)
{
    return event->series ? event->series->count : event->count;
}

static int by_time(const void *a, const void *b)
{
    struct dv_time left = dv_event_last_seen(*(const struct dv_api_event *const *)a);
    struct dv_time right = dv_event_last_seen(*(const struct dv_api_event *const *)b);

    if (left.seconds != right.seconds)
        return left.seconds < right.seconds ? -1 : 1;
    return (left.nanos > right.nanos) - (left.nanos < right.nanos);
}

/* "5m", "5m (x3 over 1h)" */
static const char *age_text(const struct dv_describe *d, const struct dv_api_event *event)
{
    const char *age = dv_describe_age(d, dv_event_last_seen(event));
    struct dv_time first =
        event->first_timestamp.is_set ? event->first_timestamp : event->event_time;

    if (dv_event_count(event) < 2 || !first.is_set)
        return age;
    return dv_str_to_c(dv_str_printf(d->arena, "%s (x%lld over %s)", age,
                                     (long long)dv_event_count(event), dv_describe_age(d, first)),
                       d->arena);
}

void dv_describe_events(const struct dv_describe *d, const struct dv_api_event *const *events,
                        size_t n_events)
{
    static const char *const headers[] = {"Type", "Reason", "Age", "From", "Message"};
    const struct dv_api_event **sorted =
        DV_NEW_ARRAY(d->arena, const struct dv_api_event *, n_events);
    struct dv_table table;

    if (n_events == 0) {
        dv_describe_line(d, 0, "Events", "<none>");
        return;
    }
    for (size_t i = 0; i < n_events; i++)
        sorted[i] = events[i];
    qsort(sorted, n_events, sizeof(sorted[0]), by_time);
    dv_describe_line(d, 0, "Events", "%s", "");
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n_events; i++) {
        const struct dv_api_event *event = sorted[i];
        dv_str from =
            event->source.component.n ? event->source.component : event->reporting_component;

        dv_table_add(&table, dv_cli_plain(event->type, d->arena));
        dv_table_add(&table, dv_cli_plain(event->reason, d->arena));
        dv_table_add(&table, age_text(d, event));
        dv_table_add(&table, dv_cli_plain(from, d->arena));
        dv_table_add(&table, dv_cli_plain(dv_str_trim(event->message), d->arena));
    }
    dv_describe_table(d, 1, &table);
}
