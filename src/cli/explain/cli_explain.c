/* cli_explain.c - the verdicts over nodes and devices, as text. */
#include "cli/explain/cli_explain.h"

#include <inttypes.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/explain/explain_judge.h"
#include "cli/explain/world.h"

/* The number of nodes that fit on a screen with the rest; --all prints the others. */
#define NODE_ROWS_MAX 20u
#define DEVICE_ROWS_MAX 10u
/* As many nodes of which the same is to be said are one line. */
#define ALIKE_MIN 3u

/* "1000" as "1,000". */
dv_str dv_cli_thousands(size_t n, struct dv_arena *arena)
{
    return n < 1000 ? dv_str_printf(arena, "%zu", n)
                    : dv_str_printf(arena, "%.*s,%03zu", DV_FMT(dv_cli_thousands(n / 1000, arena)),
                                    n % 1000);
}

static const char *plain(const struct dv_cli_explain *explain, dv_str text)
{
    return dv_cli_plain(text, explain->arena);
}

static void print_obstacles(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_explain_subject *subject = explain->subject;

    for (size_t i = 0; i < subject->obstacles.n; i++)
        dv_buf_printf(buf, "%s cannot be allocated: %s\n", plain(explain, subject->what),
                      plain(explain, subject->obstacles.v[i]));
}

static void print_results(const struct dv_cli_explain *explain, const struct dv_cli_claims *claims,
                          const struct dv_api_allocation_result *const *allocations,
                          struct dv_buf *buf)
{
    static const char *const headers[] = {"CLAIM", "REQUEST", "DRIVER", "POOL", "DEVICE"};
    struct dv_table table;

    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < claims->n; i++) {
        const struct dv_api_device_allocation_result *devices = &allocations[i]->devices;

        for (size_t k = 0; k < devices->n_results; k++) {
            dv_table_add(&table, plain(explain, claims->v[i]->metadata.name));
            dv_table_add(&table, plain(explain, devices->results[k].request));
            dv_table_add(&table, plain(explain, devices->results[k].driver));
            dv_table_add(&table, plain(explain, devices->results[k].pool));
            dv_table_add(&table, plain(explain, devices->results[k].device));
        }
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
}

static void print_allocated(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_claims *claims = &explain->subject->allocated;
    const struct dv_api_allocation_result **allocations =
        DV_NEW_ARRAY(explain->arena, const struct dv_api_allocation_result *, claims->n);

    if (claims->n == 0)
        return;
    for (size_t i = 0; i < claims->n; i++) {
        allocations[i] = claims->v[i]->status.allocation;
        dv_buf_printf(buf, "claim %s/%s is allocated%s\n",
                      plain(explain, claims->v[i]->metadata.namespace),
                      plain(explain, claims->v[i]->metadata.name),
                      claims->v[i]->status.n_reserved_for > 0 ? " and reserved" : "");
    }
    dv_buf_add_char(buf, '\n');
    print_results(explain, claims, allocations, buf);
    if (explain->subject->pending.n > 0 && !explain->subject->is_hopeless)
        dv_buf_add_char(buf, '\n');
}

/* "3 taken, 1 fits" of the devices from `from` on */
static void print_counts(const struct dv_why_request *request, size_t from, struct dv_buf *buf)
{
    size_t i = from;

    while (i < request->n_devices) {
        enum dv_why why = request->devices[i].why; /* they are sorted by it */
        size_t n = 0;

        for (; i < request->n_devices && request->devices[i].why == why; i++)
            n++;
        dv_buf_printf(buf, "%zu %s%s", n, dv_why_name(why), i < request->n_devices ? ", " : "");
    }
}

static void print_request(const struct dv_cli_explain *explain,
                          const struct dv_why_request *request, struct dv_buf *buf)
{
    static const char *const headers[] = {"DEVICE", "WHY", "DETAIL"};
    size_t n =
        explain->is_all ? request->n_devices : dv_size_min(request->n_devices, DEVICE_ROWS_MAX);
    struct dv_table table;

    dv_buf_add_char(buf, '\n');
    if (explain->subject->pending.n > 1)
        dv_buf_printf(buf, "claim %s, ", plain(explain, request->claim));
    dv_buf_printf(buf, "request %s: %" PRIu64 " wanted", plain(explain, request->request),
                  request->n_wanted);
    if (request->n_devices == 0)
        dv_buf_add_c(buf, ", there are no devices");
    else
        dv_buf_printf(buf, " of %zu: ", request->n_devices);
    print_counts(request, 0, buf);
    dv_buf_add_char(buf, '\n');
    if (request->n_devices == 0)
        return;
    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n; i++) {
        const struct dv_why_device *device = &request->devices[i];

        dv_table_add(
            &table,
            plain(explain, dv_str_printf(explain->arena, "%.*s/%.*s%s%.*s", DV_FMT(device->driver),
                                         DV_FMT(device->pool), device->device.n ? "/" : "",
                                         DV_FMT(device->device))));
        dv_table_add(&table, dv_why_name(device->why));
        dv_table_add(&table, plain(explain, device->text));
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
    if (n < request->n_devices) {
        dv_buf_printf(buf, "and %zu more, which --all shows: ", request->n_devices - n);
        print_counts(request, n, buf);
        dv_buf_add_char(buf, '\n');
    }
}

static void print_node(const struct dv_cli_explain *explain, const struct dv_cli_verdict *verdict,
                       struct dv_buf *buf)
{
    const struct dv_cli_claims *claims = &explain->subject->pending;
    const struct dv_api_allocation_result **allocations;
    const struct dv_api_allocation_result *made;
    struct dv_explanation explanation;

    if (verdict->outcome != DV_ALLOC_DONE) {
        dv_cli_judge(explain, verdict->node, DV_CLI_NODE_COST_MIN, explain->arena, &explanation);
        if (explanation.n_requests > 0)
            dv_buf_printf(buf, "\nOn %s:\n", plain(explain, verdict->node->name));
        for (size_t i = 0; i < explanation.n_requests; i++)
            print_request(explain, &explanation.requests[i], buf);
        return;
    }
    made = dv_cli_allocate(explain, verdict->node);
    if (!made)
        return;
    allocations = DV_NEW_ARRAY(explain->arena, const struct dv_api_allocation_result *, claims->n);
    for (size_t i = 0; i < claims->n; i++)
        allocations[i] = &made[i];
    dv_buf_printf(buf, "\nOn %s it would get:\n\n", plain(explain, verdict->node->name));
    print_results(explain, claims, allocations, buf);
}

/* How many verdicts from `from` on say the same in the same words. */
static size_t count_alike(const struct dv_cli_verdicts *verdicts, size_t from)
{
    const struct dv_cli_verdict *first = &verdicts->v[from];
    size_t n = 1;

    while (from + n < verdicts->n && verdicts->v[from + n].group == first->group)
        n++;
    return n;
}

static const char *group_name(const struct dv_cli_explain *explain,
                              const struct dv_cli_verdict *verdict, size_t n_alike)
{
    return plain(explain,
                 dv_str_printf(explain->arena, "%.*s and %.*s like it", DV_FMT(verdict->node->name),
                               DV_FMT(dv_cli_thousands(n_alike - 1, explain->arena))));
}

static void print_nodes(const struct dv_cli_explain *explain,
                        const struct dv_cli_verdicts *verdicts, struct dv_buf *buf)
{
    static const char *const headers[] = {"NODE", "FITS", "WHY"};
    size_t n_rows_max = explain->is_all ? verdicts->n : NODE_ROWS_MAX;
    struct dv_table table;
    size_t n = 0;

    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n_rows_max && n < verdicts->n; i++) {
        const struct dv_cli_verdict *verdict = &verdicts->v[n];
        size_t n_alike = explain->is_all ? 1 : count_alike(verdicts, n);

        dv_table_add(&table, n_alike < ALIKE_MIN ? plain(explain, verdict->node->name)
                                                 : group_name(explain, verdict, n_alike));
        dv_table_add(&table, verdict->outcome == DV_ALLOC_DONE ? "yes" : "no");
        dv_table_add(&table, plain(explain, dv_cli_short_summary(explain, verdict)));
        n += n_alike < ALIKE_MIN ? 1 : n_alike;
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
    if (n < verdicts->n)
        dv_buf_printf(buf, "and %.*s more, which --all shows\n",
                      DV_FMT(dv_cli_thousands(verdicts->n - n, explain->arena)));
}

static void print_verdicts(const struct dv_cli_explain *explain,
                           const struct dv_cli_verdicts *verdicts, struct dv_buf *buf)
{
    const char *what = plain(explain, explain->subject->what);
    bool fits = verdicts->n_fitting > 0;

    if (verdicts->n == 1)
        dv_buf_printf(buf, "%s %s be allocated on %s\n\n", what, fits ? "can" : "cannot",
                      plain(explain, verdicts->v[0].node->name));
    else if (fits)
        dv_buf_printf(buf, "%s can be allocated on %.*s of %.*s nodes\n\n", what,
                      DV_FMT(dv_cli_thousands(verdicts->n_fitting, explain->arena)),
                      DV_FMT(dv_cli_thousands(verdicts->n, explain->arena)));
    else
        dv_buf_printf(buf, "%s cannot be allocated on any of %.*s nodes\n\n", what,
                      DV_FMT(dv_cli_thousands(verdicts->n, explain->arena)));
    print_nodes(explain, verdicts, buf);
    for (size_t i = 0; i < verdicts->n && (i == 0 || explain->is_all); i++)
        print_node(explain, &verdicts->v[i], buf);
}

bool dv_cli_explain_print(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_explain_subject *subject = explain->subject;
    struct dv_cli_verdicts verdicts;

    print_obstacles(explain, buf);
    print_allocated(explain, buf);
    if (subject->is_hopeless)
        return false;
    if (subject->pending.n == 0) {
        if (subject->obstacles.n == 0 && subject->allocated.n == 0)
            dv_buf_printf(buf, "%s has no claims\n", plain(explain, subject->what));
        return subject->obstacles.n == 0;
    }
    if (subject->obstacles.n > 0 && subject->allocated.n == 0)
        dv_buf_add_char(buf, '\n');
    verdicts = dv_cli_judge_all(explain);
    print_verdicts(explain, &verdicts, buf);
    return subject->obstacles.n == 0 && verdicts.n_fitting > 0;
}

void dv_cli_explain_line(const struct dv_cli_explain *explain, struct dv_cli_line *line)
{
    const struct dv_cli_explain_subject *subject = explain->subject;
    struct dv_cli_verdicts verdicts = {0};

    *line = (struct dv_cli_line){.n_nodes = explain->nodes->n};
    if (subject->obstacles.n > 0)
        line->why = subject->obstacles.v[0];
    if (subject->pending.n == 0 || subject->is_hopeless) {
        line->is_ok = subject->obstacles.n == 0;
        return;
    }
    verdicts = dv_cli_judge_all(explain);
    line->n_fitting = verdicts.n_fitting;
    line->is_ok = subject->obstacles.n == 0 && verdicts.n_fitting > 0;
    if (line->why.n == 0 && verdicts.n > 0) {
        line->nearest = verdicts.v[0].node->name;
        line->why = dv_cli_short_summary(explain, &verdicts.v[0]);
    }
}
