/* explain.c - why not: for every device the first thing that speaks against it. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "alloc/inside.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "number/number.h"
#include "resource/resource.h"

/* Enough to come as far as a search gets; a proof is not needed for an explanation. */
#define EXPLAIN_STEPS_MAX 20000u
#define TEXT_BYTES_MAX 16384u

static const char *const names[] = {
    [DV_WHY_FITS] = "fits",
    [DV_WHY_CONSTRAINT] = "constraint",
    [DV_WHY_TAKEN_HERE] = "taken-here",
    [DV_WHY_COUNTER] = "counter",
    [DV_WHY_CAPACITY] = "capacity",
    [DV_WHY_TAINTED] = "tainted",
    [DV_WHY_TAKEN] = "taken",
    [DV_WHY_REQUEST_SELECTOR] = "request-selector",
    [DV_WHY_CLASS_SELECTOR] = "class-selector",
    [DV_WHY_SELECTOR_FAILS] = "selector-fails",
    [DV_WHY_OTHER_NODE] = "other-node",
    [DV_WHY_GATE] = "gate",
    [DV_WHY_POOL_UPDATING] = "pool-updating",
    [DV_WHY_POOL_INVALID] = "pool-invalid",
    [DV_WHY_POOL_OBSOLETE] = "pool-obsolete",
};

const char *dv_why_name(enum dv_why why)
{
    return names[why];
}

/* ---- one device ---- */

/* What is being explained: one want, on one device. */
struct question {
    struct search *search;
    const struct task *task;
    size_t ask;
    size_t want;
    uint32_t place;
    struct dv_why_device *answer;
};

static bool answer(struct question *question, enum dv_why why, dv_str text)
{
    question->answer->why = why;
    question->answer->text = text;
    return true;
}

static const struct want *want_of(const struct question *question)
{
    return &question->task->asks[question->ask].wants[question->want];
}

static struct device *device_of(const struct question *question)
{
    return question->search->view->places[question->place].device;
}

static dv_str print_report(const struct want *want, size_t i, const struct dv_cel_report *report,
                           struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (i < want->n_class_selectors)
        dv_buf_printf(&buf, "class %.*s: ", DV_FMT(want->class->metadata.name));
    dv_buf_add(&buf, report->part);
    if (report->verdict == DV_CEL_FAILS) {
        dv_buf_add_c(&buf, " fails: ");
        dv_buf_add(&buf, report->problem);
    } else {
        dv_buf_add_c(&buf, " is false");
    }
    for (size_t j = 0; j < report->n_seen; j++)
        dv_buf_printf(&buf, "%s%.*s = %.*s", j ? ", " : "; ", DV_FMT(report->seen[j].expression),
                      DV_FMT(report->seen[j].value));
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static bool ask_selectors(struct question *question)
{
    const struct want *want = want_of(question);
    struct search *search = question->search;

    for (size_t i = 0; i < want->n_selectors; i++) {
        struct selector *selector = want->selectors[i];
        struct dv_cel_report report;

        if (!selector->expr)
            return answer(question, DV_WHY_SELECTOR_FAILS,
                          dv_str_printf(search->arena, "does not compile: %s", selector->err.msg));
        dv_cel_explain(selector->expr, dv_device_cel(search->inventory, device_of(question)),
                       search->arena, &report);
        if (report.verdict == DV_CEL_MATCHES)
            continue;
        return answer(question,
                      report.verdict == DV_CEL_FAILS ? DV_WHY_SELECTOR_FAILS
                      : i < want->n_class_selectors  ? DV_WHY_CLASS_SELECTOR
                                                     : DV_WHY_REQUEST_SELECTOR,
                      print_report(want, i, &report, search->arena));
    }
    return false;
}

static bool ask_node(struct question *question)
{
    struct search *search = question->search;
    struct dv_err err;
    bool is_for;

    if (!dv_device_is_for(device_of(question), search->node, &is_for, &err))
        return answer(question, DV_WHY_OTHER_NODE,
                      dv_str_printf(search->arena, "its node selector cannot be: %s", err.msg));
    return !is_for && answer(question, DV_WHY_OTHER_NODE, DV_STR("it is for other nodes"));
}

static bool ask_gates(struct question *question)
{
    const struct dv_alloc_features *features = &question->search->inventory->features;
    const struct dv_api_device *api = device_of(question)->api;

    if (!features->binding_conditions && api->n_binding_conditions > 0)
        return answer(question, DV_WHY_GATE,
                      DV_STR("it has binding conditions, and DRADeviceBindingConditions is off"));
    if (!features->partitionable_devices && api->n_consumes_counters > 0)
        return answer(question, DV_WHY_GATE,
                      DV_STR("it consumes counters, and DRAPartitionableDevices is off"));
    return false;
}

/* Which of the picks so far has the place; NULL: none. */
static const struct pick *holder_of(const struct search *search, uint32_t place,
                                    const struct task **by)
{
    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_picks; j++)
            if (search->tasks[i].picks[j].place == place) {
                *by = &search->tasks[i];
                return &search->tasks[i].picks[j];
            }
    return NULL;
}

static bool ask_use(struct question *question)
{
    struct search *search = question->search;
    const struct ident *ident = device_of(question)->ident;
    const struct task *by = NULL;
    const struct pick *pick;

    if (dv_place_is_free(search, question->task, want_of(question), question->place))
        return false;
    pick = holder_of(search, question->place, &by);
    if (!pick)
        return answer(question, DV_WHY_TAKEN,
                      ident->holder.n
                          ? dv_str_printf(search->arena, "taken by %.*s", DV_FMT(ident->holder))
                          : DV_STR("taken by another claim"));
    return answer(question, DV_WHY_TAKEN_HERE,
                  dv_str_printf(search->arena, "taken by request %.*s of claim %.*s",
                                DV_FMT(by->asks[pick->ask].wants[pick->want].name),
                                DV_FMT(by->claim->metadata.name)));
}

static bool ask_taints(struct question *question)
{
    const struct dv_api_device_taint *taint =
        dv_want_repelled(question->search, want_of(question), device_of(question));

    if (!taint)
        return false;
    return answer(question, DV_WHY_TAINTED,
                  dv_str_printf(question->search->arena,
                                "the taint %.*s%s%.*s:%.*s is not tolerated", DV_FMT(taint->key),
                                taint->value.n ? "=" : "", DV_FMT(taint->value),
                                DV_FMT(taint->effect)));
}

static bool ask_capacity(struct question *question)
{
    dv_str problem;

    if (!question->search->inventory->features.consumable_capacity)
        return false;
    problem = dv_capacity_problem(question->search, want_of(question), question->place);
    return problem.n > 0 && answer(question, DV_WHY_CAPACITY, problem);
}

static bool ask_counters(struct question *question)
{
    struct search *search = question->search;
    const struct counter *counter = dv_place_lacks_counter(search, question->place);
    const struct place *place = &search->view->places[question->place];
    const struct dv_quantity *used;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
    struct dv_quantity left;
    size_t index;

    if (!counter)
        return false;
    index = (size_t)(counter - place->pool->counters);
    used = search->used[place->pool - search->view->pools];
    left = dv_quantity_sub(&counter->available, &used[index], search->arena);
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_printf(&buf, "the counter %.*s/%.*s is short: ", DV_FMT(counter->set),
                  DV_FMT(counter->name));
    for (size_t i = 0; i < place->n_consumes; i++)
        if (place->consumes[i].counter == index) {
            dv_quantity_print(&place->consumes[i].value, &buf);
            dv_buf_add_c(&buf, " needed, ");
        }
    dv_quantity_print(&left, &buf);
    dv_buf_add_c(&buf, " of ");
    dv_quantity_print(&counter->value, &buf);
    dv_buf_add_c(&buf, " left");
    return answer(question, DV_WHY_COUNTER, dv_str_copy(dv_buf_str(&buf), search->arena));
}

/* A device of the claim that the constraint holds this one against. */
static const struct device *opponent(const struct question *question,
                                     const struct constraint *constraint)
{
    const struct task *task = question->task;

    for (size_t i = 0; i < task->n_picks; i++) {
        const struct pick *pick = &task->picks[i];

        if (constraint->applies[task->first_want[pick->ask] + pick->want])
            return question->search->view->places[pick->place].device;
    }
    return NULL;
}

static bool ask_constraints(struct question *question)
{
    struct search *search = question->search;
    const struct task *task = question->task;

    for (size_t i = 0; i < task->n_constraints; i++) {
        const struct constraint *constraint = &task->constraints[i];
        const struct device *other = opponent(question, constraint);
        dv_str mine;

        if (dv_constraint_allows(search, constraint, task, question->ask, question->want,
                                 device_of(question)))
            continue;
        mine = dv_constraint_value(constraint, device_of(question), search->arena);
        if (mine.n == 0)
            return answer(question, DV_WHY_CONSTRAINT,
                          dv_str_printf(search->arena,
                                        "it has no attribute %.*s, which a "
                                        "constraint of the claim is about",
                                        DV_FMT(constraint->attribute)));
        return answer(
            question, DV_WHY_CONSTRAINT,
            dv_str_printf(search->arena, "%s %.*s: it has %.*s, %.*s has %.*s",
                          constraint->is_distinct ? "distinctAttribute" : "matchAttribute",
                          DV_FMT(constraint->attribute), DV_FMT(mine),
                          DV_FMT(other ? other->api->name : DV_STR("another")),
                          DV_FMT(other ? dv_constraint_value(constraint, other, search->arena)
                                       : DV_STR("the same"))));
    }
    return false;
}

/* From the farthest miss to the nearest, as the search asks. */
static void ask_all(struct question *question)
{
    static bool (*const questions[])(struct question * question) = {
        ask_gates,  ask_selectors, ask_node,     ask_use,
        ask_taints, ask_capacity,  ask_counters, ask_constraints,
    };

    for (size_t i = 0; i < DV_COUNT(questions); i++)
        if (questions[i](question))
            return;
    (void)answer(question, DV_WHY_FITS, DV_STR("nothing speaks against it"));
}

/* ---- one request ---- */

static int by_nearness(const void *a, const void *b)
{
    const struct dv_why_device *left = a;
    const struct dv_why_device *right = b;
    int order;

    if (left->why != right->why)
        return left->why < right->why ? -1 : 1;
    order = dv_str_cmp(left->driver, right->driver);
    if (order == 0)
        order = dv_str_cmp(left->pool, right->pool);
    return order ? order : dv_str_cmp(left->device, right->device);
}

static void explain_pool(const struct search *search, const struct node_pool *pool,
                         struct dv_why_device *device)
{
    device->driver = pool->pool->driver;
    device->pool = pool->pool->name;
    if (pool->state == POOL_INVALID) {
        device->why = DV_WHY_POOL_INVALID;
        device->text = dv_str_printf(search->arena, "the pool contradicts itself: %.*s",
                                     DV_FMT(pool->problem));
    } else {
        device->why = DV_WHY_POOL_UPDATING;
        device->text = DV_STR("the pool is being updated: not all of its slices are there");
    }
}

static void explain_want(struct search *search, const struct task *task, size_t ask, size_t want,
                         struct dv_why_request *request)
{
    struct node_view *view = search->view;
    const struct want *wanted = &task->asks[ask].wants[want];
    size_t n_max = view->n_places + view->n_pools + view->obsolete.n;

    request->claim =
        dv_str_printf(search->arena, "%.*s/%.*s", DV_FMT(task->claim->metadata.namespace),
                      DV_FMT(task->claim->metadata.name));
    request->request = wanted->name;
    request->n_wanted = wanted->n_devices;
    request->devices = DV_NEW_ARRAY(search->arena, struct dv_why_device, n_max);
    for (uint32_t i = 0; i < view->n_places; i++) {
        struct dv_why_device *device = &request->devices[request->n_devices++];
        struct question question = {search, task, ask, want, i, device};

        device->driver = view->places[i].device->slice->pool->driver;
        device->pool = view->places[i].device->slice->pool->name;
        device->device = view->places[i].device->api->name;
        ask_all(&question);
        request->n_fitting += device->why == DV_WHY_FITS;
    }
    for (size_t i = 0; i < view->n_pools; i++)
        if (view->pools[i].state != POOL_USABLE)
            explain_pool(search, &view->pools[i], &request->devices[request->n_devices++]);
    for (size_t i = 0; i < view->obsolete.n; i++)
        request->devices[request->n_devices++] = (struct dv_why_device){
            .why = DV_WHY_POOL_OBSOLETE,
            .driver = view->obsolete.v[i].pool->driver,
            .pool = view->obsolete.v[i].pool->name,
            .text = DV_STR("a newer generation of the pool is being published"),
        };
    qsort(request->devices, request->n_devices, sizeof(struct dv_why_device), by_nearness);
}

/* ---- the whole ---- */

/* Takes again what the search had when it came furthest. */
static void return_to(struct search *search, const struct furthest *furthest)
{
    for (size_t i = 0; i < furthest->n_picks; i++) {
        const struct pick *pick = &furthest->picks[i];

        if (dv_take(search, &search->tasks[furthest->tasks[i]], pick->ask, pick->want, pick->place,
                    false) != TOOK)
            return; /* cannot be: it was taken in this order before */
    }
}

static dv_str summarize(const struct search *search, const struct dv_explanation *explanation)
{
    for (size_t i = 0; i < explanation->n_requests; i++) {
        const struct dv_why_request *request = &explanation->requests[i];
        size_t counts[DV_COUNT(names)] = {0};
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
        bool is_first = true;

        if (!request->is_stuck)
            continue;
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_buf_printf(&buf, "claim %.*s, request %.*s: ", DV_FMT(request->claim),
                      DV_FMT(request->request));
        if (request->n_devices == 0) {
            dv_buf_add_c(&buf, "there are no devices on this node");
        } else {
            dv_buf_printf(&buf, "%llu wanted of %zu", (unsigned long long)request->n_wanted,
                          request->n_devices);
            for (size_t j = 0; j < request->n_devices; j++)
                counts[request->devices[j].why]++;
            for (size_t j = 0; j < DV_COUNT(names); j++)
                if (counts[j] > 0) {
                    dv_buf_printf(&buf, "%s%zu %s", is_first ? ": " : ", ", counts[j], names[j]);
                    is_first = false;
                }
        }
        return dv_str_copy(dv_buf_str(&buf), search->arena);
    }
    return DV_STR("no request stands in the way by itself: their combination does");
}

static void explain_requests(struct search *search, struct dv_explanation *explanation)
{
    const struct furthest *furthest = search->furthest;
    size_t n = 0;

    for (size_t i = 0; i < search->n_tasks; i++)
        n += search->tasks[i].first_want[search->tasks[i].n_asks];
    explanation->requests = DV_NEW_ARRAY(search->arena, struct dv_why_request, n);
    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_asks; j++)
            for (size_t k = 0; k < search->tasks[i].asks[j].n_wants; k++) {
                struct dv_why_request *request = &explanation->requests[explanation->n_requests++];

                explain_want(search, &search->tasks[i], j, k, request);
                request->is_stuck =
                    furthest->is_set && furthest->task == i && furthest->ask == j &&
                    (!search->tasks[i].asks[j].has_alternatives || furthest->want == k);
            }
}

void dv_alloc_explain(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                      const struct dv_api_resource_claim *const *claims, size_t n_claims,
                      struct dv_arena *arena, struct dv_explanation *explanation)
{
    struct dv_alloc_options options = {0};
    struct furthest furthest = {0};
    struct dv_err err = {0};
    struct search search = {
        .inventory = inventory,
        .node = node,
        .options = &options,
        .n_steps_max = EXPLAIN_STEPS_MAX,
        .arena = arena,
        .err = &err,
        .furthest = &furthest,
    };

    *explanation = (struct dv_explanation){.outcome = DV_ALLOC_FAILED};
    if (!dv_search_begin(&search, claims, n_claims)) {
        explanation->summary = dv_str_copy(dv_str_from_c(err.msg), arena);
        return;
    }
    furthest.picks = DV_NEW_ARRAY(arena, struct pick, n_claims * DV_ALLOC_RESULTS_MAX);
    furthest.tasks = DV_NEW_ARRAY(arena, size_t, n_claims * DV_ALLOC_RESULTS_MAX);
    explanation->outcome = dv_search_run(&search);
    if (explanation->outcome == DV_ALLOC_DONE) {
        explanation->summary = DV_STR("it can be allocated on this node");
        return;
    }
    if (explanation->outcome == DV_ALLOC_FAILED) {
        explanation->summary = dv_str_copy(dv_str_from_c(err.msg), arena);
        return;
    }
    return_to(&search, &furthest);
    explain_requests(&search, explanation);
    explanation->summary = explanation->outcome == DV_ALLOC_NODE_FAILED
                               ? dv_str_copy(dv_str_from_c(err.msg), arena)
                               : summarize(&search, explanation);
}
