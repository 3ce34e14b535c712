/* lease_take.c - a request is checked: whether it can ever be had here, by this user, for this
 * owner; then it enters the queue. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/visible.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "lease/manager/leases_state.h"
#include "lease/state/lease_where.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/sched.h"

#define PASSWD_BYTES_MAX (1u << 20)
#define GRACE_MAX_S 3600u

/* ---- helpers ---- */

/* The user's name in /etc/passwd, or its number: asking a directory service could take long. */
static dv_str user_name(uint32_t uid, struct dv_arena *arena)
{
    struct dv_err absent;
    dv_str text;
    dv_str line;

    if (dv_file_read(DV_STR("/etc/passwd"), PASSWD_BYTES_MAX, arena, &text, &absent))
        while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
            dv_str name, skipped, number;
            uint32_t value;

            if (dv_str_split(&line, ':', &name) && dv_str_split(&line, ':', &skipped) &&
                dv_str_split(&line, ':', &number) && dv_str_to_u32(number, &value) && value == uid)
                return dv_str_copy(name, arena);
        }
    return dv_str_printf(arena, "%u", uid);
}

static dv_str make_id(const struct dv_leases *leases, struct dv_arena *arena)
{
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char id[DV_LEASE_ID_BYTES];

    do {
        uint64_t random = dv_random_u64();

        for (size_t i = 0; i < sizeof(id); i++, random >>= 5)
            id[i] = letters[random & 31];
    } while (dv_map_get(&leases->by_id, (dv_str){id, sizeof(id)}));
    return dv_str_copy((dv_str){id, sizeof(id)}, arena);
}

/* What the lease wants of a resource or class; dv_lease_free gives the pool back. */
static void add_want(struct dv_lease *lease, bool is_class, dv_str name, uint64_t n)
{
    lease->item.wants[lease->item.n_wants++] =
        (struct dv_lease_want){dv_lease_queue_pool(&lease->leases->queue, is_class, name), n};
}

/* ---- what there is ---- */

static bool check_resource(const struct dv_leases *leases, const struct dv_lease_resource *resource,
                           struct dv_err *err)
{
    const struct dv_device_state *state = dv_device_manager_state(leases->options.devices);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_device_resource_info *all;
    struct dv_device_resource_info info;
    dv_str nearest = DV_STR("");
    size_t least = 1 + resource->name.n / 2;
    size_t n;

    if (dv_device_find(state, resource->name, &info) && info.plugin != DV_DEVICE_NO_PLUGIN) {
        if (info.plugin != DV_DEVICE_SERVING || info.n_devices >= resource->n)
            return true; /* one that has not come back, or not listed yet, is waited for */
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%llu %.*s wanted, and there are %zu on this machine",
                       (unsigned long long)resource->n, DV_FMT(resource->name), info.n_devices);
    }
    if (dv_leases_is_booting() || (dv_device_find(state, resource->name, &info) && info.is_known))
        return true;
    n = dv_device_resources(state, arena, &all);
    for (size_t i = 0; i < n; i++) {
        size_t distance = dv_str_distance(all[i].name, resource->name);

        nearest = distance < least ? all[i].name : nearest;
        least = dv_size_min(least, distance);
    }
    if (nearest.n > 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "no plugin offers %.*s on this machine; did you mean %.*s?",
                       DV_FMT(resource->name), DV_FMT(nearest));
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "no plugin offers %.*s on this machine; `davit devices` shows what there is",
                   DV_FMT(resource->name));
}

/* Names of attributes and capacities, gathered from the devices of a class, and the devices. */
struct names {
    struct dv_arena *arena;
    DV_VEC(struct dv_lease_name) v;
    DV_VEC(uint64_t) members;
};

static void add_name(struct names *names, dv_str driver, dv_str text, enum dv_lease_name_kind kind)
{
    size_t slash = dv_str_find_char(text, '/');
    struct dv_lease_name name = {.name =
                                     slash < text.n ? dv_str_slice(text, slash + 1, text.n) : text,
                                 .domain = slash < text.n ? dv_str_slice(text, 0, slash) : driver,
                                 .kind = kind};

    for (size_t i = 0; i < names->v.n; i++)
        if (dv_str_eq(names->v.v[i].name, name.name) &&
            dv_str_eq(names->v.v[i].domain, name.domain))
            return;
    name.name = dv_str_copy(name.name, names->arena);
    name.domain = dv_str_copy(name.domain, names->arena);
    *dv_vec_add_in(&names->v, names->arena) = name;
}

/* Devices that consume counters of their pool count as all of it: a part of a GPU is waited for in
 * turn with the whole of it. */
static void see_device(void *ctx, const struct dv_api_resource_slice_spec *slice,
                       const struct dv_api_device *device)
{
    struct names *names = ctx;
    dv_str driver = slice->driver;

    *dv_vec_add_in(&names->members, names->arena) =
        dv_lease_device_number(driver, slice->pool.name, device->name);
    if (device->n_consumes_counters > 0)
        *dv_vec_add_in(&names->members, names->arena) =
            dv_lease_device_number(driver, slice->pool.name, DV_STR(""));
    for (size_t i = 0; i < device->n_attributes; i++)
        add_name(names, driver, device->attributes[i].key,
                 device->attributes[i].value.version.n > 0 ? DV_LEASE_VERSION : DV_LEASE_ATTRIBUTE);
    for (size_t i = 0; i < device->n_capacity; i++)
        add_name(names, driver, device->capacity[i].key, DV_LEASE_CAPACITY);
}

static bool expand_where(const struct names *names, const struct dv_lease_devices *asked,
                         struct dv_arena *arena, struct dv_lease_devices *devices,
                         struct dv_err *err)
{
    dv_str *where = DV_NEW_ARRAY(arena, dv_str, asked->n_where);
    dv_str *same = DV_NEW_ARRAY(arena, dv_str, asked->n_same);

    for (size_t i = 0; i < asked->n_where; i++)
        if (!dv_lease_where_expand(asked->where[i], names->v.v, names->v.n, arena, &where[i], err))
            return dv_wrap(err, "where \"%.*s\"", DV_FMT(asked->where[i]));
    for (size_t i = 0; i < asked->n_same; i++) {
        const struct dv_lease_name *name =
            dv_lease_name_find(names->v.v, names->v.n, asked->same[i]);

        if (!name) {
            (void)dv_lease_name_fail(names->v.v, names->v.n, asked->same[i], err);
            return dv_wrap(err, "same \"%.*s\"", DV_FMT(asked->same[i]));
        }
        same[i] = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(name->domain), DV_FMT(name->name));
    }
    devices->where = where;
    devices->same = same;
    return true;
}

static bool read_devices(struct dv_leases *leases, struct dv_lease *lease,
                         const struct dv_lease_devices *asked, size_t i, struct dv_err *err)
{
    struct dv_lease_devices *devices = &lease->spec.devices[i];
    struct names names = {.arena = lease->arena};

    if (!leases->sched || !leases->cluster)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "class %.*s: devices of classes are leased where davitd has its own API and "
                       "scheduler; on a node of a cluster the cluster allocates them: create a pod",
                       DV_FMT(asked->class));
    if (!dv_sched_is_synced(leases->sched))
        return dv_fail(err, DV_UNAVAILABLE, "davitd has not read its API yet: try again");
    *devices = (struct dv_lease_devices){
        .class = dv_str_copy(asked->class, lease->arena),
        .request = asked->request.n > 0 ? dv_str_copy(asked->request, lease->arena)
                   : i == 0             ? DV_STR("devices")
                                        : dv_str_printf(lease->arena, "devices-%zu", i),
        .n = asked->n ? asked->n : 1,
        .n_where = asked->n_where,
        .n_same = asked->n_same};
    if (!dv_sched_each_of_class(leases->sched, leases->options.node_name, asked->class, see_device,
                                &names))
        return dv_fail(
            err, dv_leases_is_booting() ? DV_UNAVAILABLE : DV_FAILED_PRECONDITION,
            "there is no device class \"%.*s\"; `davit get deviceclasses` shows those that "
            "there are",
            DV_FMT(asked->class));
    if (names.members.n == 0 && dv_leases_may_come(leases))
        return dv_fail(err, DV_UNAVAILABLE, "no device of class %.*s is there yet",
                       DV_FMT(asked->class));
    if (!expand_where(&names, asked, lease->arena, devices, err))
        return false;
    add_want(lease, true, devices->class, devices->n);
    dv_lease_pool_set_members(&leases->queue, lease->item.wants[lease->item.n_wants - 1].pool,
                              names.members.v, names.members.n);
    return true;
}

/* ---- what is asked for ---- */

static bool check_sizes(const struct dv_lease_request *request, struct dv_err *err)
{
    uint64_t n_devices = 0;

    if (request->n_resources + request->n_devices == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "nothing is asked for: name a resource or a device class");
    if (request->n_resources > DV_LEASE_RESOURCES_MAX || request->n_devices > DV_LEASE_DEVICES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "more than %u resources or %u requests for classes are asked for",
                       DV_LEASE_RESOURCES_MAX, DV_LEASE_DEVICES_MAX);
    for (size_t i = 0; i < request->n_devices; i++) {
        if (request->devices[i].n_where > DV_LEASE_WHERE_MAX ||
            request->devices[i].n_same > DV_LEASE_WHERE_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "class %.*s: more than %u selectors",
                           DV_FMT(request->devices[i].class), DV_LEASE_WHERE_MAX);
        n_devices = dv_u64_add_clamped(n_devices, request->devices[i].n);
    }
    if (n_devices > 32) /* the API's limit for one claim */
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "more than 32 devices of classes are asked for");
    if (request->key.n > DV_LEASE_KEY_BYTES_MAX || !dv_str_is_visible(request->key))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the key is longer than %u bytes, or no text",
                       DV_LEASE_KEY_BYTES_MAX);
    if (request->max_s > DV_LEASE_SECONDS_MAX || request->grace_s > GRACE_MAX_S)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the longest lease is ten years, the longest grace an hour");
    return true;
}

static bool read_resources(struct dv_leases *leases, struct dv_lease *lease,
                           const struct dv_lease_request *request, struct dv_err *err)
{
    for (size_t i = 0; i < request->n_resources; i++) {
        struct dv_lease_resource *resource = NULL;
        uint64_t n = request->resources[i].n ? request->resources[i].n : 1;

        if (!dv_device_name_check(request->resources[i].name, err))
            return false;
        for (size_t k = 0; k < lease->spec.n_resources; k++)
            if (dv_str_eq(lease->spec.resources[k].name, request->resources[i].name))
                resource = &lease->spec.resources[k];
        if (!resource) {
            resource = &lease->spec.resources[lease->spec.n_resources++];
            resource->name = dv_str_copy(request->resources[i].name, lease->arena);
        }
        resource->n = dv_u64_add_clamped(resource->n, n);
    }
    for (size_t i = 0; i < lease->spec.n_resources; i++) {
        if (!check_resource(leases, &lease->spec.resources[i], err))
            return false;
        add_want(lease, false, lease->spec.resources[i].name, lease->spec.resources[i].n);
    }
    return true;
}

static void read_command(struct dv_lease *lease, const struct dv_lease_request *request)
{
    dv_str *words =
        DV_NEW_ARRAY(lease->arena, dv_str, dv_size_min(request->n_command, DV_LEASE_WORDS_MAX));

    for (size_t i = 0; i < request->n_command && i < DV_LEASE_WORDS_MAX; i++) {
        dv_str word = dv_str_slice(request->command[i], 0, DV_LEASE_WORD_BYTES_MAX);

        while (word.n > 0 && !dv_str_is_utf8(word)) /* cut within a character */
            word.n--;
        words[lease->spec.n_command++] = dv_str_copy(word, lease->arena);
    }
    lease->spec.command = words;
}

/* ---- the whole ---- */

static bool read_request(struct dv_leases *leases, const struct dv_lease_caller *caller,
                         const struct dv_lease_request *asked, struct dv_lease *lease,
                         struct dv_err *err)
{
    struct dv_lease_request named;
    const struct dv_lease_request *request = &named;
    struct dv_lease_spec *spec = &lease->spec;
    char uuid[DV_UUID_BYTES];

    if (!check_sizes(asked, err) ||
        !dv_lease_read_names(leases, asked, lease->arena, &named, err) || !check_sizes(&named, err))
        return false;
    spec->id = make_id(leases, lease->arena);
    spec->uid = dv_str_copy(dv_random_uuid(uuid), lease->arena);
    spec->key = dv_str_copy(request->key, lease->arena);
    spec->user = caller->uid;
    spec->user_name = user_name(caller->uid, lease->arena);
    spec->grace_s = request->grace_s;
    spec->resources = DV_NEW_ARRAY(lease->arena, struct dv_lease_resource, request->n_resources);
    spec->devices = DV_NEW_ARRAY(lease->arena, struct dv_lease_devices, request->n_devices);
    lease->item.wants =
        DV_NEW_ARRAY(lease->arena, struct dv_lease_want, request->n_resources + request->n_devices);
    read_command(lease, request);
    if (!read_resources(leases, lease, request, err))
        return false;
    for (size_t i = 0; i < request->n_devices; i++) {
        spec->n_devices = i + 1;
        if (!read_devices(leases, lease, &request->devices[i], i, err))
            return false;
    }
    if (!dv_lease_judge(lease, caller, request, err) ||
        !dv_lease_find_owner(leases, caller, &request->owner, lease->arena, &spec->owner, err))
        return false;
    if (spec->n_devices == 0)
        return true;
    if (!dv_lease_make_claim(lease, err))
        return false;
    switch (dv_sched_would_do(leases->sched, leases->options.node_name, lease->claim, err)) {
    case DV_SCHED_NEVER:
        if (err->code == DV_OK || err->code == DV_UNKNOWN)
            err->code = DV_FAILED_PRECONDITION;
        return dv_leases_is_booting() || dv_wrap(err, "it can never be had on this machine");
    case DV_SCHED_HELD:
    case DV_SCHED_NOT_NOW:
    case DV_SCHED_BUSY: /* it is found out in the queue */
        break;
    }
    return true;
}

bool dv_leases_check(struct dv_leases *leases, const struct dv_lease_caller *caller,
                     const struct dv_lease_request *request, struct dv_err *err)
{
    struct dv_lease *lease = dv_lease_new(leases, dv_arena_new());
    bool ok = read_request(leases, caller, request, lease, err);

    dv_lease_free(lease);
    return ok;
}

static struct dv_lease *find_by_key(struct dv_leases *leases, uint32_t uid, dv_str key)
{
    const struct dv_map_entry *entry;

    if (key.n == 0)
        return NULL;
    for (size_t at = 0; (entry = dv_map_next(&leases->by_id, &at));) {
        struct dv_lease *lease = entry->value;

        if (lease->spec.user == uid && dv_str_eq(lease->spec.key, key) &&
            !dv_lease_is_ending(lease) && lease->failure.code == DV_OK)
            return lease;
    }
    return NULL;
}

static void on_attached(struct dv_task *task)
{
    struct dv_lease *lease = DV_CONTAINER(task, struct dv_lease, task);

    if (dv_lease_is_held(lease))
        dv_lease_tell(lease, DV_LEASE_GRANTED);
}

static void attach(struct dv_lease *lease, struct dv_lease_listener *listener)
{
    listener->lease = lease;
    dv_list_push(&lease->listeners, &listener->link);
}

static bool has_room(const struct dv_leases *leases, const struct dv_lease_caller *caller,
                     const struct dv_lease_user *user, struct dv_err *err)
{
    if (leases->queue.items.n >= DV_LEASES_WAITING_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%u requests are waiting, and no more may",
                       DV_LEASES_WAITING_MAX);
    if (!caller->is_root && user->n_waiting >= DV_LEASES_USER_WAITING_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "user %u has %zu requests waiting, and no more may", user->uid,
                       user->n_waiting);
    if (!caller->is_root && user->n_held >= DV_LEASES_USER_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "user %u has %zu leases, and no more may",
                       user->uid, user->n_held);
    return true;
}

bool dv_leases_take(struct dv_leases *leases, const struct dv_lease_caller *caller,
                    const struct dv_lease_request *request, struct dv_lease_listener *listener,
                    struct dv_err *err)
{
    struct dv_lease *lease = find_by_key(leases, caller->uid, request->key);

    if (leases->is_closing || !leases->is_started)
        return dv_fail(err, DV_UNAVAILABLE, "davitd is %s: try again",
                       leases->is_closing ? "stopping" : "starting");
    if (lease) {
        attach(lease, listener);
        dv_task_post(&lease->task, leases->loop, on_attached);
        return true;
    }
    if (request->only_attaches)
        return dv_fail(err, DV_NOT_FOUND, "the lease has ended");
    lease = dv_lease_new(leases, dv_arena_new());
    dv_lease_set_user(lease, caller->uid);
    if (!has_room(leases, caller, lease->user, err) ||
        !read_request(leases, caller, request, lease, err)) {
        dv_lease_free(lease);
        return false;
    }
    lease->item.order = ++leases->n_arrivals;
    lease->spec.since_ms = dv_clock_wall_ns(dv_loop_clock(leases->loop)) / DV_NS_PER_MS;
    (void)dv_map_set(&leases->by_id, lease->spec.id, lease);
    attach(lease, listener);
    dv_lease_arm_patience(lease, request->wait_ms);
    dv_leases_enter(lease);
    return true;
}

void dv_lease_leave(struct dv_lease_listener *listener)
{
    struct dv_lease *lease = listener->lease;

    dv_link_remove(&listener->link);
    listener->lease = NULL;
    if (lease && dv_list_is_empty(&lease->listeners))
        dv_lease_give_up(lease, DV_CANCELLED, "nobody waits for it any more");
}
