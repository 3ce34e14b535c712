/* alloc_miss.c - the nearest miss in one line: of the request at which the search ends, the device
 * that lacks least. For events and conditions, where the whole explanation is too long and costs
 * too much. The line has no names of claims: pods that are alike are told the same, and nobody is
 * told of what is not theirs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

/* What is worth reading in an event. */
#define LINE_BYTES_MAX 200u
#define TEXT_BYTES_MAX 16384u
#define DOTS "..."
/* What it costs to look for the sentences that speak against a device, beside evaluating its
 * selectors. */
#define COST_WHY 50u

bool dv_why_is_fitting(const struct dv_why_device *device)
{
    return device->why == DV_WHY_FITS || (device->why == DV_WHY_TAKEN_HERE && device->brief.n == 0);
}

/* One line, cut at a length that is read. */
static dv_str bound(struct dv_buf *buf, struct dv_arena *arena)
{
    size_t n = buf->n;

    if (n > LINE_BYTES_MAX) {
        n = LINE_BYTES_MAX - (sizeof(DOTS) - 1);
        while (n > 0 && ((unsigned char)dv_buf_str(buf).p[n] & 0xc0u) == 0x80u)
            n--; /* do not cut a UTF-8 character in two */
        dv_buf_cut(buf, n);
        dv_buf_add_c(buf, DOTS);
    }
    return dv_str_copy(dv_buf_str(buf), arena);
}

static void add_line(struct dv_buf *buf, dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        dv_buf_add_char(buf, (unsigned char)text.p[i] < ' ' ? ' ' : text.p[i]);
}

static dv_str print(const struct dv_alloc_search *search, const struct dv_why_request *request,
                    const struct dv_why_device *nearest, size_t n_fitting)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_printf(&buf, "%.*s: %llu wanted, ", DV_FMT(request->request),
                  (unsigned long long)request->n_wanted);
    if (request->n_devices == 0) {
        dv_buf_printf(&buf, "there are no devices on %.*s", DV_FMT(search->node->name));
        return bound(&buf, search->arena);
    }
    dv_buf_printf(&buf, "%zu looked at", request->n_devices);
    if (n_fitting > 0)
        dv_buf_printf(&buf, ", %zu %s", n_fitting, n_fitting == 1 ? "fits" : "fit");
    if (nearest) {
        dv_buf_add_c(&buf, ": ");
        add_line(&buf, nearest->brief.n > 0 ? nearest->brief : nearest->text);
    }
    if (nearest && nearest->device.n > 0)
        dv_buf_printf(&buf, " (%.*s on %.*s)", DV_FMT(nearest->device), DV_FMT(search->node->name));
    else
        dv_buf_printf(&buf, " (on %.*s)", DV_FMT(search->node->name));
    return bound(&buf, search->arena);
}

static void read_request(const struct dv_alloc_search *search, const struct dv_why_request *request,
                         struct dv_alloc_miss *miss)
{
    const struct dv_why_device *nearest = NULL;
    size_t n_fitting = 0;

    for (size_t i = 0; i < request->n_devices; i++) {
        if (dv_why_is_fitting(&request->devices[i]))
            n_fitting++;
        else if (!nearest)
            nearest = &request->devices[i];
    }
    miss->has_devices = request->n_devices > 0;
    miss->why = nearest ? nearest->why : DV_WHY_FITS;
    miss->n_lacking = request->n_wanted - dv_u64_min(request->n_wanted, n_fitting);
    miss->text = print(search, request, nearest, n_fitting);
}

/* What it costs to explain one device: each constraint may be held against each device that the
 * search took. */
static uint64_t why_cost(const struct dv_alloc_search *search)
{
    const struct dv_alloc_furthest *furthest = search->furthest;
    uint64_t n_constraints = furthest->is_set ? search->tasks[furthest->task].n_constraints : 0;

    return COST_WHY + n_constraints * furthest->n_picks;
}

bool dv_alloc_miss_is_nearer(const struct dv_alloc_miss *miss, const struct dv_alloc_miss *than)
{
    if ((miss->text.n > 0) != (than->text.n > 0))
        return miss->text.n > 0;
    if (miss->n_passed != than->n_passed)
        return miss->n_passed > than->n_passed;
    if (miss->has_devices != than->has_devices)
        return miss->has_devices;
    if (miss->why != than->why)
        return miss->why < than->why;
    return miss->n_lacking < than->n_lacking;
}

void dv_alloc_miss(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                   const struct dv_api_resource_claim *const *claims, size_t n_claims,
                   const struct dv_alloc_options *options, struct dv_arena *arena,
                   struct dv_alloc_miss *miss)
{
    struct dv_alloc_search search = dv_explain_start(inventory, node, options, arena);
    struct dv_alloc_furthest furthest;
    struct dv_err ignored = {0}; /* the outcome is known */
    struct dv_why_request request = {0};

    *miss = (struct dv_alloc_miss){0};
    search.furthest = &furthest;
    search.err = &ignored;
    if (dv_explain_search(&search, claims, n_claims)) {
        search.cost += why_cost(&search) * search.view->n_places;
        if (search.cost < search.cost_max && dv_explain_stuck(&search, &request, &miss->n_passed))
            read_request(&search, &request, miss);
    }
    miss->cost = search.cost;
}
