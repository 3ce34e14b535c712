/* lease_names.c - what the names of a request stand for here: words without a domain, and resources
 * that a class serves. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "lease/manager/leases_state.h"
#include "lease/state/lease_word.h"
#include "resource/resource.h"
#include "sched/sched.h"

struct naming {
    struct dv_leases *leases;
    struct dv_arena *arena;
    DV_VEC(struct dv_lease_candidate) candidates;
    bool has_candidates;
    /* what comes of it */
    struct dv_lease_resource *resources;
    size_t n_resources;
    struct dv_lease_devices *devices;
    size_t n_devices;
};

static bool is_offered(const struct dv_device_resource_info *info)
{
    return info->plugin != DV_DEVICE_NO_PLUGIN || info->is_known;
}

static void see_class(void *ctx, const struct dv_api_device_class *class)
{
    struct naming *naming = ctx;

    *dv_vec_add_in(&naming->candidates, naming->arena) =
        (struct dv_lease_candidate){.name = dv_str_copy(class->metadata.name, naming->arena),
                                    .is_class = true,
                                    .resource = class->spec.extended_resource_name};
}

static void gather_candidates(struct naming *naming)
{
    const struct dv_device_state *state = dv_device_manager_state(naming->leases->options.devices);
    const struct dv_device_resource_info *all;
    size_t n = dv_device_resources(state, naming->arena, &all);

    naming->has_candidates = true;
    for (size_t i = 0; i < n; i++)
        if (is_offered(&all[i]))
            *dv_vec_add_in(&naming->candidates, naming->arena) = (struct dv_lease_candidate){
                .name = dv_str_copy(all[i].name, naming->arena), .resource = DV_STR("")};
    if (naming->leases->sched)
        dv_sched_each_class(naming->leases->sched, see_class, naming);
}

static const struct dv_lease_candidate *find_word(struct naming *naming, dv_str word,
                                                  bool needs_class, struct dv_err *err)
{
    const struct dv_lease_candidate *found;

    if (!naming->has_candidates)
        gather_candidates(naming);
    found = dv_lease_word_find(word, naming->candidates.v, naming->candidates.n, needs_class, err);
    if (!found && dv_leases_is_booting())
        err->code = DV_UNAVAILABLE; /* its plugin or driver may be about to come */
    return found;
}

static bool is_synced(const struct dv_leases *leases, struct dv_err *err)
{
    return !leases->sched || dv_sched_is_synced(leases->sched) ||
           dv_fail(err, DV_UNAVAILABLE, "davitd has not read its API yet: try again");
}

static void add_class(struct naming *naming, dv_str class, uint64_t n)
{
    naming->devices[naming->n_devices++] =
        (struct dv_lease_devices){.class = class, .request = DV_STR(""), .n = n};
}

static bool read_resource(struct naming *naming, const struct dv_lease_resource *asked,
                          struct dv_err *err)
{
    const struct dv_leases *leases = naming->leases;
    const struct dv_lease_candidate *found = NULL;
    struct dv_lease_resource resource = *asked;
    struct dv_device_resource_info info;
    dv_str class = DV_STR("");

    if (dv_str_find_char(asked->name, '/') == asked->name.n && asked->name.n > 0) {
        found = is_synced(leases, err) ? find_word(naming, asked->name, false, err) : NULL;
        if (!found)
            return false;
        resource.name = found->name;
        class = found->is_class ? found->name : class;
    } else if (leases->sched && !(dv_device_find(dv_device_manager_state(leases->options.devices),
                                                 asked->name, &info) &&
                                  is_offered(&info))) {
        if (!is_synced(leases, err))
            return false;
        class = dv_str_copy(dv_sched_class_serving(leases->sched, asked->name), naming->arena);
    }
    if (class.n > 0)
        add_class(naming, class, asked->n);
    else
        naming->resources[naming->n_resources++] = resource;
    return true;
}

static bool read_devices(struct naming *naming, const struct dv_lease_devices *asked,
                         struct dv_err *err)
{
    const struct dv_lease_candidate *found;
    bool has_conditions = asked->n_where + asked->n_same > 0;

    naming->devices[naming->n_devices++] = *asked;
    if (!dv_lease_is_word(asked->class) || !is_synced(naming->leases, err))
        return !dv_lease_is_word(asked->class);
    if (naming->leases->sched && dv_sched_has_class(naming->leases->sched, asked->class))
        return true; /* one that is called so is meant, whatever else would fit */
    found = find_word(naming, asked->class, has_conditions, err);
    if (!found)
        return false;
    if (found->is_class) {
        naming->devices[naming->n_devices - 1].class = found->name;
        return true;
    }
    naming->n_devices--;
    naming->resources[naming->n_resources++] =
        (struct dv_lease_resource){.name = found->name, .n = asked->n};
    return true;
}

bool dv_lease_read_names(struct dv_leases *leases, const struct dv_lease_request *request,
                         struct dv_arena *arena, struct dv_lease_request *named, struct dv_err *err)
{
    size_t n = request->n_resources + request->n_devices;
    struct naming naming = {.leases = leases,
                            .arena = arena,
                            .resources = DV_NEW_ARRAY(arena, struct dv_lease_resource, n),
                            .devices = DV_NEW_ARRAY(arena, struct dv_lease_devices, n)};

    for (size_t i = 0; i < request->n_devices; i++)
        if (!read_devices(&naming, &request->devices[i], err))
            return false;
    for (size_t i = 0; i < request->n_resources; i++)
        if (!read_resource(&naming, &request->resources[i], err))
            return false;
    *named = *request;
    named->resources = naming.resources;
    named->n_resources = naming.n_resources;
    named->devices = naming.devices;
    named->n_devices = naming.n_devices;
    return true;
}
