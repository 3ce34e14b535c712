#include "device_alloc_choice.h"

#include "base/err.h"
#include "device_alloc_world.h"
#include "json/json.h"

/* One container's devices of one resource, and all that bears on their choice. */
struct choice {
    struct rules *rules;
    dv_str resource;
    size_t limit;
    struct dv_json *got;      /* ids; NULL when it got none */
    struct dv_json *handed;   /* ids that earlier init containers hand on */
    struct dv_json *free;     /* healthy, held by nobody, surely not left taken */
    struct dv_json *maybe;    /* healthy, held by nobody, perhaps left taken */
    struct dv_json *affinity; /* nodes; NULL for none */
    struct dv_json *asked;    /* the call of GetPreferredAllocation; NULL without */
};

enum side {
    SIDE_ALIGNED,
    SIDE_UNALIGNED,
    SIDE_NONE,
};

/* -- Counting ------------------------------------------------------------------------------- */

static bool has_number(const struct dv_json *list, int64_t number)
{
    for (struct dv_json *one = list ? dv_json_first(list) : NULL; one; one = dv_json_next(one))
        if (number_of(one) == number)
            return true;
    return false;
}

static const struct dv_json *nodes_of(const struct dv_json *device)
{
    const struct dv_json *numa = dv_json_get(device, DV_STR("numa"));

    return dv_json_is(numa, DV_JSON_ARRAY) ? numa : NULL;
}

static enum side side_of(const struct choice *choice, dv_str id)
{
    const struct dv_json *device =
        dv_json_get(dv_json_get(choice->rules->lists, choice->resource), id);
    const struct dv_json *nodes = nodes_of(device);

    if (!choice->affinity || !nodes || dv_json_n(nodes) == 0)
        return SIDE_NONE;
    for (struct dv_json *one = dv_json_first(nodes); one; one = dv_json_next(one))
        if (has_number(choice->affinity, number_of(one)))
            return SIDE_ALIGNED;
    return SIDE_UNALIGNED;
}

static size_t count_side(const struct choice *choice, const struct dv_json *set, enum side side)
{
    size_t n = 0;

    for (struct dv_json *one = dv_json_first(set); one; one = dv_json_next(one))
        n += side_of(choice, dv_json_key(one)) == side;
    return n;
}

static size_t count_common(const struct dv_json *a, const struct dv_json *b)
{
    size_t n = 0;

    for (struct dv_json *one = dv_json_first(a); one; one = dv_json_next(one))
        n += set_has(b, dv_json_key(one));
    return n;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* -- The rules ------------------------------------------------------------------------------ */

static bool broken(struct dv_err *err, const struct choice *choice, const char *rule)
{
    return dv_fail(err, DV_FAILED_PRECONDITION, "%s: %.*s", rule, DV_FMT(choice->resource));
}

/* Rule 3, for what was taken beyond handed-over devices. */
static bool check_order(const struct choice *choice, const struct dv_json *taken, size_t n_needed,
                        struct dv_err *err)
{
    size_t n_aligned = count_side(choice, taken, SIDE_ALIGNED);
    size_t n_free_aligned = count_side(choice, choice->free, SIDE_ALIGNED);
    size_t n_unaligned = count_side(choice, taken, SIDE_UNALIGNED);
    size_t n_none = count_side(choice, taken, SIDE_NONE);
    struct dv_json *preferred = dv_json_new_object(choice->rules->arena);
    size_t n_named = 0; /* of those without a side, by the plugin */

    if (n_needed < n_free_aligned && n_aligned < n_needed)
        return broken(err, choice, "rule 3: unaligned devices, though enough are aligned");
    if (n_aligned < n_needed && n_aligned < n_free_aligned)
        return broken(err, choice, "rule 3: unaligned devices before all aligned ones");
    if (choice->asked)
        set_add_all(preferred, dv_json_get(choice->asked, DV_STR("answer")), choice->rules->arena);
    for (struct dv_json *one = dv_json_first(taken); one; one = dv_json_next(one))
        n_named +=
            set_has(preferred, dv_json_key(one)) && side_of(choice, dv_json_key(one)) == SIDE_NONE;
    if (choice->affinity && n_none > n_named &&
        n_unaligned < count_side(choice, choice->free, SIDE_UNALIGNED))
        return broken(err, choice, "rule 3: devices without node before those on other nodes");
    return true;
}

/* Rule 3: the plugin's choice comes before any other of the same rank. */
static bool check_preference(const struct choice *choice, const struct dv_json *taken,
                             size_t n_needed, struct dv_err *err)
{
    struct dv_arena *arena = choice->rules->arena;
    struct dv_json *named = dv_json_new_object(arena);
    struct dv_json *usable = dv_json_new_object(arena);
    size_t n_aligned = count_side(choice, choice->free, SIDE_ALIGNED);
    bool is_aligned_only = n_needed < n_aligned;
    size_t n_before = is_aligned_only ? 0 : n_aligned; /* taken without asking */

    if (!choice->asked)
        return true;
    set_add_all(named, dv_json_get(choice->asked, DV_STR("answer")), arena);
    for (struct dv_json *one = dv_json_first(named); one; one = dv_json_next(one)) {
        bool is_aligned = side_of(choice, dv_json_key(one)) == SIDE_ALIGNED;

        if (set_has(choice->free, dv_json_key(one)) && is_aligned == is_aligned_only)
            set_add(usable, dv_json_key(one), arena);
    }
    if (dv_json_n(choice->maybe) == 0 &&
        count_common(usable, taken) < least(n_needed - n_before, dv_json_n(usable)))
        return broken(err, choice, "rule 3: not what the plugin prefers");
    return true;
}

/* Rule 4: what the plugin is asked, and when. */
static bool check_asked(const struct choice *choice, size_t n_needed, struct dv_err *err)
{
    size_t n_aligned = count_side(choice, choice->free, SIDE_ALIGNED);
    size_t n_must;
    size_t n_available;

    if (!choice->asked)
        return true;
    n_must = dv_json_n(dv_json_get(choice->asked, DV_STR("mustInclude")));
    n_available = dv_json_n(dv_json_get(choice->asked, DV_STR("available")));
    if ((size_t)number_of(dv_json_get(choice->asked, DV_STR("size"))) != choice->limit)
        return broken(err, choice, "rule 4: another size than the limit");
    if (n_needed == 0)
        return broken(err, choice, "rule 4: asked, though handed-over devices suffice");
    if (dv_json_n(choice->maybe) > 0)
        return true; /* it is not known what else was free */
    if (n_aligned == n_needed)
        return broken(err, choice, "rule 4: asked, though the aligned devices are what is needed");
    if (n_must != choice->limit - n_needed + (n_needed < n_aligned ? 0 : n_aligned))
        return broken(err, choice, "rule 4: not what was taken must be included");
    if (n_needed < n_aligned ? n_available != n_must + n_aligned
                             : n_available != choice->limit - n_needed + dv_json_n(choice->free))
        return broken(err, choice, "rule 4: not all candidates are available");
    return true;
}

static bool check_choice(const struct choice *choice, struct dv_err *err)
{
    struct dv_json *taken = dv_json_new_object(choice->rules->arena);
    size_t n_handed = least(choice->limit, dv_json_n(choice->handed));
    size_t n_needed = choice->limit - n_handed;

    if (!check_asked(choice, n_needed, err))
        return false;
    if (!choice->got)
        return true;
    if (dv_json_n(choice->got) != choice->limit)
        return broken(err, choice, "rule 1: another number than the limit");
    if (count_common(choice->got, choice->handed) != n_handed)
        return broken(err, choice, "rule 3: handed-over devices are not taken first");
    for (struct dv_json *one = dv_json_first(choice->got); one; one = dv_json_next(one)) {
        dv_str id = dv_json_key(one);

        if (set_has(choice->handed, id))
            continue;
        set_add(taken, id, choice->rules->arena);
        if (!set_has(choice->free, id) && !set_has(choice->maybe, id))
            return broken(err, choice, "rules 1, 2: a device that is not healthy and free");
    }
    return check_order(choice, taken, n_needed, err) &&
           check_preference(choice, taken, n_needed, err);
}

/* -- Following an admission ----------------------------------------------------------------- */

struct admission {
    struct rules *rules;
    const struct dv_json *pod;
    const struct dv_json *outcome;
    const struct dv_json *held; /* at the end */
    struct dv_json *handed;     /* resource -> ids, as containers go by */
    struct dv_json *next_call;  /* resource -> how many were made */
};

static dv_str key_of(const struct admission *a, dv_str container, dv_str resource)
{
    return dv_str_printf(a->rules->arena, "%.*s|%.*s|%.*s", DV_FMT(text_of(a->pod, "uid")),
                         DV_FMT(container), DV_FMT(resource));
}

/* The member, made when it is not there. */
static struct dv_json *ensure(struct dv_json *object, dv_str key, struct dv_arena *arena)
{
    if (!dv_json_get(object, key))
        dv_json_set(object, key, dv_json_new_object(arena), arena);
    return dv_json_get(object, key);
}

/* The next call to the resource's plugin, of this kind; NULL when it is another. */
static struct dv_json *take_call(struct admission *a, dv_str resource, const char *method)
{
    struct dv_json *made = ensure(a->next_call, resource, a->rules->arena);
    const struct dv_json *calls = dv_json_get(dv_json_get(a->outcome, DV_STR("calls")), resource);
    struct dv_json *call = calls ? dv_json_at(calls, dv_json_n(made)) : NULL;

    if (!call || !dv_str_eq(text_of(call, "method"), dv_str_from_c(method)))
        return NULL;
    set_add(made, dv_str_printf(a->rules->arena, "%zu", dv_json_n(made)), a->rules->arena);
    return call;
}

static void find_free(struct choice *choice)
{
    const struct rules *rules = choice->rules;
    const struct dv_json *list = dv_json_get(rules->lists, choice->resource);
    struct dv_json *held = dv_json_new_object(rules->arena);

    for (struct dv_json *one = dv_json_first(rules->held); one; one = dv_json_next(one))
        if (dv_str_ends_with(dv_json_key(one),
                             dv_str_printf(rules->arena, "|%.*s", DV_FMT(choice->resource))))
            for (struct dv_json *node = dv_json_first(one); node; node = dv_json_next(node))
                set_add_all(held, node, rules->arena);
    for (struct dv_json *one = list ? dv_json_first(list) : NULL; one; one = dv_json_next(one)) {
        struct dv_err err;
        bool is_healthy = false;

        if (!dv_json_as_bool(dv_json_get(one, DV_STR("healthy")), &is_healthy, &err) ||
            !is_healthy || set_has(held, dv_json_key(one)))
            continue;
        set_add(set_has(rules->leaked, dv_json_key(one)) ? choice->maybe : choice->free,
                dv_json_key(one), rules->arena);
    }
}

/* A failure leaves what was taken as nobody's; which ids is seen in the calls (rule 6). */
static void note_leaks(const struct choice *choice, const struct dv_json *allocate)
{
    if (choice->got)
        return;
    set_add_all(choice->rules->leaked,
                choice->asked ? dv_json_get(choice->asked, DV_STR("mustInclude")) : NULL,
                choice->rules->arena);
    set_add_all(choice->rules->leaked, allocate ? dv_json_get(allocate, DV_STR("ids")) : NULL,
                choice->rules->arena);
}

static bool check_limit(struct admission *a, const struct dv_json *container,
                        const struct dv_json *limit, struct dv_err *err)
{
    struct dv_arena *arena = a->rules->arena;
    dv_str name = text_of(container, "name");
    dv_str key = key_of(a, name, dv_json_key(limit));
    const struct dv_json *result = dv_json_get(a->outcome, DV_STR("result"));
    struct dv_json *affinity =
        dv_json_get(dv_json_get(dv_json_get(result, DV_STR("affinity")), name), DV_STR("affinity"));
    struct dv_json *entry = a->held ? dv_json_get(a->held, key) : NULL;
    struct choice choice = {
        .rules = a->rules,
        .resource = dv_json_key(limit),
        .limit = (size_t)number_of(limit),
        .handed = ensure(a->handed, dv_json_key(limit), arena),
        .free = dv_json_new_object(arena),
        .maybe = dv_json_new_object(arena),
        .affinity = dv_json_is(affinity, DV_JSON_ARRAY) ? affinity : NULL,
    };
    const struct dv_json *allocate;

    if (dv_json_get(a->rules->held, key) || choice.limit == 0)
        return true; /* had it before, or needs none */
    choice.asked = take_call(a, dv_json_key(limit), "GetPreferredAllocation");
    allocate = take_call(a, dv_json_key(limit), "Allocate");
    if (!entry && !choice.asked && !allocate)
        return true; /* got nothing */
    find_free(&choice);
    choice.got = entry ? set_of_entry(entry, arena) : NULL;
    note_leaks(&choice, allocate);
    if (!check_choice(&choice, err))
        return false;
    if (entry)
        dv_json_set(a->rules->held, key, dv_json_copy(entry, arena), arena);
    return true;
}

/* Plain init containers hand on all they hold; the others keep theirs. */
static void hand_on(struct admission *a, const struct dv_json *container)
{
    struct dv_arena *arena = a->rules->arena;
    bool is_init = dv_str_eq(text_of(container, "kind"), DV_STR("init"));
    dv_str prefix = key_of(a, text_of(container, "name"), DV_STR(""));

    for (struct dv_json *one = dv_json_first(a->rules->held); one; one = dv_json_next(one)) {
        dv_str key = dv_json_key(one);
        struct dv_json *ids = set_of_entry(one, arena);
        struct dv_json *handed;

        if (!dv_str_starts_with(key, prefix))
            continue;
        handed = ensure(a->handed, dv_str_slice(key, prefix.n, key.n), arena);
        for (struct dv_json *id = dv_json_first(ids); id; id = dv_json_next(id)) {
            if (is_init)
                set_add(handed, dv_json_key(id), arena);
            else if (set_has(handed, dv_json_key(id)))
                dv_json_remove(dv_json_get(handed, dv_json_key(id)));
        }
    }
}

/* Limits are handled by name here; any order would do. */
static bool check_container(struct admission *a, const struct dv_json *container,
                            struct dv_err *err)
{
    const struct dv_json *limits = dv_json_get(container, DV_STR("limits"));

    for (struct dv_json *one = limits ? dv_json_first(limits) : NULL; one; one = dv_json_next(one))
        if (!check_limit(a, container, one, err))
            return false;
    hand_on(a, container);
    return true;
}

void rules_drop_gone(struct rules *rules, const struct dv_json *op, const struct dv_json *held)
{
    dv_str uid = text_of(dv_json_get(op, DV_STR("pod")), "uid");
    struct dv_json *next;

    for (struct dv_json *one = dv_json_first(rules->held); one; one = next) {
        next = dv_json_next(one);
        if (!dv_str_starts_with(dv_json_key(one), uid) && !dv_json_get(held, dv_json_key(one)))
            dv_json_remove(one);
    }
}

bool rules_check_admission(struct rules *rules, const struct dv_json *pod,
                           const struct dv_json *outcome, struct dv_err *err)
{
    const struct dv_json *containers = dv_json_get(pod, DV_STR("containers"));
    struct admission admission = {
        .rules = rules,
        .pod = pod,
        .outcome = outcome,
        .held = dv_json_get(outcome, DV_STR("held")),
        .handed = dv_json_new_object(rules->arena),
        .next_call = dv_json_new_object(rules->arena),
    };

    for (int regular = 0; regular < 2; regular++)
        for (struct dv_json *one = dv_json_first(containers); one; one = dv_json_next(one))
            if (dv_str_eq(text_of(one, "kind"), DV_STR("regular")) == (regular == 1) &&
                !check_container(&admission, one, err))
                return false;
    return true;
}
