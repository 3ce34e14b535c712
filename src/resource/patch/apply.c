/* apply.c - server-side apply, and the ownership that other writes leave behind.
 *
 * As the reference does it: a configuration is merged into the live object; what its manager
 * applied before and left out now is pruned, unless another applier has it; then whoever owned
 * something that changed either stops the apply or loses it. */
#include "resource/patch.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/custom.h"
#include "resource/patch/managers.h"
#include "resource/patch/typed.h"
#include "resource/resource.h"
#include "json/json.h"

#define CHANGED (DV_FIELDS_ADDED | DV_FIELDS_MODIFIED)
/* The manager that owned the fields of an object before ownership was kept. */
#define BEFORE_APPLY DV_STR("before-first-apply")
/* kubectl's own manager, and its annotation with the configuration that it applied last. */
#define KUBECTL DV_STR("kubectl")
#define LAST_APPLIED DV_STR("kubectl.kubernetes.io/last-applied-configuration")
/* The API's limit for all annotations of an object together. */
#define LAST_APPLIED_BYTES_MAX (256u * 1024u)

struct work {
    const struct dv_message *message;
    struct dv_typed root;
    const struct dv_manager *manager;
    struct dv_arena *arena;
    struct dv_fields reset; /* what this endpoint ignores */
    struct dv_field_owners owners;
};

struct conflicts {
    struct dv_apply_conflict *v;
    size_t n;
    size_t size;
    struct dv_arena *arena;
    dv_str manager; /* of those that are being added */
};

static struct dv_json *document(const struct dv_message *message, const void *value,
                                struct dv_arena *arena)
{
    return dv_encode_json(message, value, NULL, DV_STR(""), arena);
}

/* The document of an object of which nothing was ever set. */
static struct dv_json *empty_doc(const struct dv_message *message, struct dv_arena *arena)
{
    return document(message, dv_arena_alloc(arena, message->size, message->align), arena);
}

static struct dv_fields compare(const struct work *work, const struct dv_json *old,
                                const struct dv_json *doc)
{
    struct dv_fields all = dv_typed_compare(&work->root, old, doc, work->arena);

    return dv_fields_without(&all, &work->reset, work->arena);
}

/* Takes fields that changed or went from all owners but `self` (may be NULL). */
static void take_from_others(struct work *work, const struct dv_fields *changes,
                             const struct dv_field_owner *self)
{
    for (size_t i = 0; i < work->owners.n; i++) {
        struct dv_field_owner *owner = &work->owners.v[i];

        if (owner != self && dv_field_owner_speaks(owner, work->manager->api_version))
            owner->fields = dv_fields_difference(&owner->fields, changes,
                                                 CHANGED | DV_FIELDS_REMOVED, work->arena);
    }
}

/* Gives the changed fields to the entry of `name`, under operation Update. */
static void give_changes(struct work *work, const struct dv_fields *changes, dv_str name)
{
    struct dv_fields taken = dv_fields_only(changes, CHANGED, work->arena);
    struct dv_manager manager = *work->manager;
    struct dv_field_owner *owner;

    taken = dv_field_owners_strip(&taken, work->arena);
    if (dv_fields_is_empty(&taken))
        return;
    manager.name = name;
    owner = dv_field_owners_get(&work->owners, &manager, false, work->arena);
    owner->fields = dv_fields_union(&owner->fields, &taken, work->arena);
    owner->time = work->manager->now;
}

static struct work start(const struct dv_message *message, const struct dv_managed_fields *managed,
                         const struct dv_manager *manager, struct dv_arena *arena)
{
    const struct dv_custom_version *custom = manager->custom;

    return (struct work){
        .message = message,
        .root = custom ? dv_typed_custom_root(message, custom->schema) : dv_typed_root(message),
        .manager = manager,
        .arena = arena,
        .reset = custom
                     ? dv_field_owners_reset_custom(custom->has_status, manager->subresource, arena)
                     : dv_field_owners_reset(message, manager->subresource, arena),
        .owners = dv_field_owners_decode(managed, arena),
    };
}

void dv_apply_update(const struct dv_message *message, const void *old, const void *value,
                     const struct dv_managed_fields *managed, const struct dv_manager *manager,
                     struct dv_arena *arena, struct dv_managed_fields *result)
{
    struct work work = start(message, managed, manager, arena);
    struct dv_fields changes;

    if (old && work.owners.n == 0) { /* ownership of this object was never kept, or was given up */
        *result = (struct dv_managed_fields){0};
        return;
    }
    if (!old)
        old = dv_arena_alloc(arena, message->size, message->align);
    changes = manager->custom ? dv_typed_compare(&work.root, document(message, old, arena),
                                                 document(message, value, arena), arena)
                              : dv_typed_compare_values(message, old, value, arena);
    changes = dv_fields_without(&changes, &work.reset, arena);
    take_from_others(&work, &changes, NULL);
    give_changes(&work, &changes, manager->name);
    dv_field_owners_cap(&work.owners, arena);
    *result = dv_field_owners_encode(&work.owners, arena);
}

/* ---- apply ---- */

static void add_conflict(void *data, dv_str path)
{
    struct conflicts *conflicts = data;

    *dv_vec_add_in(conflicts, conflicts->arena) = (struct dv_apply_conflict){
        .manager = conflicts->manager, .field = dv_str_copy(path, conflicts->arena)};
}

/* `"x" with subresource "status" using v1` */
static dv_str print_manager(const struct dv_field_owner *owner, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, LAST_APPLIED_BYTES_MAX);
    dv_buf_add_json(&buf, owner->manager);
    if (owner->subresource.n > 0) {
        dv_buf_add_c(&buf, " with subresource ");
        dv_buf_add_json(&buf, owner->subresource);
    }
    if (!owner->is_applied)
        dv_buf_printf(&buf, " using %.*s", DV_FMT(owner->api_version));
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* The fields that one manager would lose. */
struct loss {
    dv_str manager; /* as it is told */
    struct dv_fields fields;
};

static int cmp_losses(const void *a, const void *b)
{
    const struct loss *x = a;
    const struct loss *y = b;

    return dv_str_cmp(x->manager, y->manager);
}

/* Finds all fields that others own and the apply would change, except `allowed` (may be NULL); by
 * manager. */
static struct conflicts find_conflicts(const struct work *work, const struct dv_fields *changes,
                                       const struct dv_field_owner *self,
                                       const struct dv_fields *allowed)
{
    struct conflicts conflicts = {.arena = work->arena};
    struct loss *losses = DV_NEW_ARRAY(work->arena, struct loss, work->owners.n);
    size_t n = 0;

    for (size_t i = 0; i < work->owners.n; i++) {
        const struct dv_field_owner *owner = &work->owners.v[i];
        struct loss *loss = &losses[n];

        if (owner == self || !dv_field_owner_speaks(owner, work->manager->api_version))
            continue;
        loss->fields = dv_fields_intersection(&owner->fields, changes, CHANGED, work->arena);
        if (allowed)
            loss->fields =
                dv_fields_difference(&loss->fields, allowed, DV_FIELDS_MEMBER, work->arena);
        loss->manager = print_manager(owner, work->arena);
        n += !dv_fields_is_empty(&loss->fields);
    }
    if (n > 0)
        qsort(losses, n, sizeof(losses[0]), cmp_losses);
    for (size_t i = 0; i < n; i++) {
        conflicts.manager = losses[i].manager;
        dv_fields_each(&losses[i].fields, work->arena, add_conflict, &conflicts);
    }
    return conflicts;
}

/* The union of what appliers own, this manager with its new fields among them. */
static struct dv_fields applied_fields(const struct work *work)
{
    struct dv_fields all = {0};

    for (size_t i = 0; i < work->owners.n; i++)
        if (work->owners.v[i].is_applied &&
            dv_field_owner_speaks(&work->owners.v[i], work->manager->api_version))
            all = dv_fields_union(&all, &work->owners.v[i].fields, work->arena);
    return all;
}

static struct dv_fields fields_with_parents(const struct work *work, const struct dv_json *doc)
{
    struct dv_fields fields = dv_typed_fields(&work->root, doc, work->arena);

    return dv_typed_with_parents(&work->root, &fields, work->arena);
}

/* Takes out what was applied last time, is not applied now, and no applier has. Removing a field
 * removes all under it, so first everything goes and then what somebody has comes back. */
static struct dv_json *prune(const struct work *work, struct dv_json *merged,
                             const struct dv_fields *last)
{
    struct dv_arena *arena = work->arena;
    struct dv_fields all = fields_with_parents(work, merged);
    struct dv_fields gone = dv_typed_with_parents(&work->root, last, arena);
    struct dv_fields applied = applied_fields(work);
    struct dv_fields left;
    struct dv_json *pruned;

    if (dv_fields_is_empty(last))
        return merged;
    pruned = dv_typed_remove(&work->root, merged, &gone, arena);
    left = fields_with_parents(work, pruned);
    applied = dv_typed_with_parents(&work->root, &applied, arena);
    left = dv_fields_union(&left, &applied, arena);
    gone = dv_fields_difference(&all, &left, DV_FIELDS_MEMBER, arena);
    pruned = dv_typed_remove(&work->root, merged, &gone, arena);
    left = fields_with_parents(work, pruned);
    gone = dv_fields_difference(&all, &left, DV_FIELDS_MEMBER, arena);
    gone = dv_fields_intersection(&gone, last, DV_FIELDS_MEMBER, arena);
    return dv_typed_remove(&work->root, merged, &gone, arena);
}

static dv_str last_applied(const struct dv_json *live)
{
    const struct dv_json *meta = dv_json_get(live, DV_STR("metadata"));
    const struct dv_json *node =
        dv_json_get(dv_json_get(meta, DV_STR("annotations")), LAST_APPLIED);
    struct dv_err ignored;
    dv_str text;

    return node && dv_json_as_str(node, &text, &ignored) ? text : DV_STR("");
}

/* What `kubectl apply` set on the client's side belongs to kubectl on the server's side too, so
 * changing it is no conflict. */
static bool find_allowed(const struct work *work, const struct dv_json *live,
                         struct dv_fields *allowed)
{
    struct dv_fields *meta;
    struct dv_fields own = {0};
    const struct dv_json *doc;
    struct dv_err ignored;

    if (!dv_str_eq(work->manager->name, KUBECTL) || last_applied(live).n == 0)
        return false;
    doc = dv_json_parse(last_applied(live), NULL, work->arena, &ignored);
    if (!doc || !dv_typed_check(&work->root, doc, work->arena, &ignored))
        return false;
    *allowed = dv_typed_fields(&work->root, doc, work->arena);
    meta = dv_fields_add(&own, 'f', DV_STR("metadata"), work->arena);
    meta = dv_fields_add(meta, 'f', DV_STR("annotations"), work->arena);
    dv_fields_add(meta, 'f', LAST_APPLIED, work->arena)->in = DV_FIELDS_MEMBER;
    *allowed = dv_fields_union(allowed, &own, work->arena);
    return true;
}

/* Updates kubectl's annotation, when there is one, so that a later apply on the client's side sees
 * the same. */
static void set_last_applied(const struct work *work, const struct dv_json *config,
                             struct dv_json *doc)
{
    struct dv_json_style style = {.sort_keys = true, .escape_html = true};
    struct dv_json *notes =
        dv_json_get(dv_json_get(doc, DV_STR("metadata")), DV_STR("annotations"));
    struct dv_json *old = dv_json_get(notes, LAST_APPLIED);
    struct dv_json *copy;
    struct dv_buf buf;

    if (!old || !dv_str_eq(work->manager->name, KUBECTL))
        return;
    copy = dv_json_copy(config, work->arena);
    notes = dv_json_get(dv_json_get(copy, DV_STR("metadata")), DV_STR("annotations"));
    if (dv_json_get(notes, LAST_APPLIED))
        dv_json_remove(dv_json_get(notes, LAST_APPLIED));
    dv_buf_init(&buf, LAST_APPLIED_BYTES_MAX);
    dv_json_print(copy, &style, &buf);
    dv_buf_add_char(&buf, '\n');
    dv_json_replace(old, dv_json_new_str(buf.is_over ? DV_STR("") : dv_buf_str(&buf), work->arena));
    dv_buf_fini(&buf);
}

static void drop_managed_fields(struct dv_json *doc)
{
    struct dv_json *managed =
        dv_json_get(dv_json_get(doc, DV_STR("metadata")), DV_STR("managedFields"));

    if (managed)
        dv_json_remove(managed);
}

/* Gives an object whose ownership was never kept an owner, at its first apply. */
static void start_ownership(struct work *work, const struct dv_json *live)
{
    struct dv_fields changes = compare(work, empty_doc(work->message, work->arena), live);

    give_changes(work, &changes, BEFORE_APPLY);
}

static void own_config(struct work *work, const struct dv_json *config, struct dv_field_owner *self)
{
    struct dv_fields fields = dv_typed_fields(&work->root, config, work->arena);

    fields = dv_fields_without(&fields, &work->reset, work->arena);
    self->fields = dv_field_owners_strip(&fields, work->arena);
    self->api_version = work->manager->api_version;
}

bool dv_apply(const struct dv_message *message, const struct dv_json *live,
              const struct dv_managed_fields *managed, const struct dv_json *config,
              const struct dv_manager *manager, bool force, struct dv_arena *arena,
              struct dv_apply_result *result, struct dv_err *err)
{
    struct work work = start(message, managed, manager, arena);
    struct dv_apply_result made = {0};
    struct conflicts conflicts = {0};
    struct dv_fields allowed;
    struct dv_fields changes;
    struct dv_fields last;
    struct dv_field_owner *self;

    if (!dv_typed_check(&work.root, config, arena, err))
        return false;
    if (live && work.owners.n == 0)
        start_ownership(&work, live);
    self = dv_field_owners_get(&work.owners, manager, true, arena);
    last = self->fields;
    own_config(&work, config, self);
    made.doc = prune(&work, dv_typed_merge(&work.root, live, config, arena), &last);
    changes = compare(&work, live, made.doc);
    if (!force)
        conflicts = find_conflicts(&work, &changes, self, NULL);
    if (conflicts.n > 0 && find_allowed(&work, live, &allowed))
        conflicts = find_conflicts(&work, &changes, self, &allowed);
    made.conflicts = conflicts.v;
    made.n_conflicts = conflicts.n;
    if (conflicts.n == 0)
        take_from_others(&work, &changes, self);
    if (!self->time.is_set || !live || !dv_json_eq(live, made.doc))
        self->time = manager->now;
    set_last_applied(&work, config, made.doc);
    drop_managed_fields(made.doc);
    made.managed = dv_field_owners_encode(&work.owners, arena);
    *result = made;
    return true;
}

bool dv_managed_fields_eq(const struct dv_managed_fields *a, const struct dv_managed_fields *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!dv_str_eq(a->v[i].manager, b->v[i].manager) ||
            !dv_str_eq(a->v[i].operation, b->v[i].operation) ||
            !dv_str_eq(a->v[i].api_version, b->v[i].api_version) ||
            !dv_str_eq(a->v[i].subresource, b->v[i].subresource) ||
            !dv_str_eq(a->v[i].fields_v1, b->v[i].fields_v1))
            return false;
    return true;
}
