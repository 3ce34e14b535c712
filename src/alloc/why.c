/* why.c - explains one device: the first thing that speaks against giving it to a want, asked in
 * the order in which the search asks. Used by alloc_explain.c. */
#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cel/cel.h"
#include "number/number.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX 16384u
/* What it costs to evaluate a selector part by part and to print what it saw (measured: some 15
 * us). */
#define COST_REPORT 1500u

/* What is being explained: one want on one device. */
struct question {
    struct dv_alloc_search *search;
    const struct dv_alloc_task *task;
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

static bool answer_briefly(struct question *question, enum dv_why why, dv_str text, dv_str brief)
{
    question->answer->brief = brief;
    return answer(question, why, text);
}

static const struct dv_alloc_want *want_of(const struct question *question)
{
    return &question->task->asks[question->ask].wants[question->want];
}

static struct dv_alloc_device *device_of(const struct question *question)
{
    return question->search->view->places[question->place].device;
}

static dv_str print_report(const struct dv_alloc_want *want, size_t i,
                           const struct dv_cel_report *report, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
    const char *separator = "; ";

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
    for (size_t j = 0; j < report->n_seen; j++) {
        if (dv_str_eq(report->seen[j].value, report->problem))
            continue; /* this part of the conjunction is what failed */
        dv_buf_printf(&buf, "%s%.*s = %.*s", separator, DV_FMT(report->seen[j].expression),
                      DV_FMT(report->seen[j].value));
        separator = ", ";
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static bool ask_selectors(struct question *question)
{
    const struct dv_alloc_want *want = want_of(question);
    struct dv_alloc_search *search = question->search;
    struct dv_inventory *inventory = search->inventory;

    for (size_t i = 0; i < want->n_selectors; i++) {
        struct dv_alloc_selector *selector = want->selectors[i];
        struct dv_cel_report report;
        bool matches;
        dv_str text;
        dv_str brief;

        if (dv_selector_recall(selector, device_of(question), &matches) && matches)
            continue;
        if (search->cost >= search->cost_max)
            return answer(question, DV_WHY_SELECTOR_FAILS,
                          DV_STR("its selectors were not evaluated: the explanation was given up, "
                                 "for it costs too much"));
        if (!selector->expr)
            return answer(question, DV_WHY_SELECTOR_FAILS,
                          dv_str_printf(search->arena, "does not compile: %s", selector->err.msg));
        dv_cel_explain(selector->expr, dv_inventory_cel_device(inventory, device_of(question)),
                       inventory->scratch, &report);
        search->cost += report.cost + COST_EVALUATION + COST_REPORT;
        text = report.verdict == DV_CEL_MATCHES ? DV_STR_NONE
                                                : print_report(want, i, &report, search->arena);
        brief = text.n > 0 ? dv_why_brief(&report, search->arena) : DV_STR_NONE;
        dv_arena_reset(inventory->scratch);
        if (report.verdict == DV_CEL_MATCHES)
            continue;
        return answer_briefly(question,
                              report.verdict == DV_CEL_FAILS ? DV_WHY_SELECTOR_FAILS
                              : i < want->n_class_selectors  ? DV_WHY_CLASS_SELECTOR
                                                             : DV_WHY_REQUEST_SELECTOR,
                              text, brief);
    }
    return false;
}

static bool ask_node(struct question *question)
{
    struct dv_alloc_search *search = question->search;
    struct dv_err err;
    bool is_for;

    if (!dv_alloc_device_is_for(device_of(question), search->node, &is_for, &err))
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

/* Finds which of the devices taken so far is at the place; NULL: none. */
static const struct dv_alloc_pick *holder_of(const struct dv_alloc_search *search, uint32_t place,
                                             const struct dv_alloc_task **by)
{
    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_picks; j++)
            if (search->tasks[i].picks[j].place == place) {
                *by = &search->tasks[i];
                return &search->tasks[i].picks[j];
            }
    return NULL;
}

/* The claim that holds the whole device: the newest, should there be several. */
static dv_str holder(const struct dv_alloc_ident *ident)
{
    const struct dv_list *holds = &ident->holds;

    for (struct dv_link *link = holds->head.prev; link != &holds->head; link = link->prev) {
        const struct dv_alloc_hold *hold = DV_CONTAINER(link, struct dv_alloc_hold, link);

        if (!hold->share_id.p && hold->holder.n)
            return hold->holder;
    }
    return DV_STR("another claim");
}

/* Whether the device is shared and already serves this very request: it can do so only once. */
static bool serves_already(const struct question *question)
{
    const struct dv_alloc_task *task = question->task;

    for (size_t i = 0; i < task->n_picks; i++)
        if (task->picks[i].place == question->place && task->picks[i].ask == question->ask &&
            task->picks[i].want == question->want)
            return true;
    return false;
}

static bool ask_use(struct question *question)
{
    struct dv_alloc_search *search = question->search;
    const struct dv_alloc_ident *ident = device_of(question)->ident;
    const struct dv_alloc_task *by = NULL;
    const struct dv_alloc_pick *pick;

    if (serves_already(question))
        return answer(question, DV_WHY_TAKEN_HERE, DV_STR("taken by this request"));
    if (dv_place_is_free(search, question->task, want_of(question), question->place))
        return false;
    pick = holder_of(search, question->place, &by);
    if (!pick)
        return answer_briefly(question, DV_WHY_TAKEN,
                              dv_str_printf(search->arena, "taken by %.*s", DV_FMT(holder(ident))),
                              DV_STR("taken by another claim"));
    return answer_briefly(question, DV_WHY_TAKEN_HERE,
                          dv_str_printf(search->arena, "taken by request %.*s of claim %.*s",
                                        DV_FMT(by->asks[pick->ask].wants[pick->want].name),
                                        DV_FMT(by->claim->metadata.name)),
                          DV_STR("taken by another request of the pod"));
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
    struct dv_alloc_search *search = question->search;
    const struct dv_alloc_counter *counter = dv_place_lacks_counter(search, question->place);
    const struct dv_alloc_place *place = &search->view->places[question->place];
    /* Stays zero when the device takes nothing of the counter: the pool was overdrawn before. */
    struct dv_quantity needed = {0};
    struct dv_quantity left;
    struct dv_quantity missing;
    size_t index;

    if (!counter)
        return false;
    index = (size_t)(counter - place->pool->counters);
    for (size_t i = 0; i < place->n_consumes; i++)
        if (place->consumes[i].counter == index)
            needed = place->consumes[i].value;
    left = dv_quantity_sub(&counter->available,
                           &search->used[place->pool - search->view->pools][index], search->arena);
    missing = dv_quantity_sub(&needed, &left, search->arena);
    return answer(question, DV_WHY_COUNTER,
                  dv_str_printf(search->arena,
                                "the counter %.*s/%.*s is short by %.*s: %.*s needed, %.*s of %.*s "
                                "left",
                                DV_FMT(counter->set), DV_FMT(counter->name),
                                DV_FMT(dv_quantity_text(&missing, search->arena)),
                                DV_FMT(dv_quantity_text(&needed, search->arena)),
                                DV_FMT(dv_quantity_text(&left, search->arena)),
                                DV_FMT(dv_quantity_text(&counter->value, search->arena))));
}

/* A device of the claim that is in conflict with this one by the constraint. For a matching
 * constraint any of the others will do. */
static const struct dv_alloc_device *opponent(const struct question *question,
                                              const struct dv_alloc_constraint *constraint)
{
    const struct dv_alloc_task *task = question->task;

    for (size_t i = 0; i < task->n_picks; i++) {
        const struct dv_alloc_pick *pick = &task->picks[i];
        const struct dv_alloc_device *device = question->search->view->places[pick->place].device;

        if (constraint->applies[task->first_want[pick->ask] + pick->want] &&
            (!constraint->is_distinct ||
             dv_constraint_clashes(question->search, constraint, device, device_of(question))))
            return device;
    }
    return NULL;
}

static bool ask_constraints(struct question *question)
{
    struct dv_alloc_search *search = question->search;
    const struct dv_alloc_task *task = question->task;

    for (size_t i = 0; i < task->n_constraints; i++) {
        const struct dv_alloc_constraint *constraint = &task->constraints[i];
        const struct dv_alloc_device *other = opponent(question, constraint);
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

/* Asks from the farthest miss to the nearest, in the order of the search: the first answer is the
 * reason. */
void dv_why_explain(struct dv_alloc_search *search, const struct dv_alloc_task *task, size_t ask,
                    size_t want, uint32_t place, struct dv_why_device *device)
{
    static bool (*const questions[])(struct question *) = {
        ask_gates,  ask_selectors, ask_node,     ask_use,
        ask_taints, ask_capacity,  ask_counters, ask_constraints,
    };
    struct question question = {search, task, ask, want, place, device};

    for (size_t i = 0; i < DV_COUNT(questions); i++)
        if (questions[i](&question))
            return;
    (void)answer(&question, DV_WHY_FITS, DV_STR("nothing speaks against it"));
}
