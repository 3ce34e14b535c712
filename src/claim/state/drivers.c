/* drivers.c - DRA drivers: which service to use, which of their sockets to call, whether their
 * slices may stay. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "number/number.h"

/* -- Services ------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* in PluginInfo; NULL: it is found by trying */
    const char *prepare;
    const char *unprepare;
    enum dv_dra_service older;
} services[] = {
    [DV_DRA_V1] = {"v1.DRAPlugin",         "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
                   "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",                                                                                                DV_N_DRA_SERVICES},
    [DV_DRA_V1BETA1] = {"v1beta1.DRAPlugin",
                   "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",                    "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
                   DV_N_DRA_SERVICES                                                                                                                                                                   },
    [DV_DRA_V1ALPHA3] = {"v1alpha3.NodeService", "/v1alpha3.Node/NodePrepareResources",
                   "/v1alpha3.Node/NodeUnprepareResources",                                                                                                                           DV_DRA_V1ALPHA2  },
    [DV_DRA_V1ALPHA2] = {"v1alpha2.Node",        "/v1alpha2.Node/NodePrepareResource",
                   "/v1alpha2.Node/NodeUnprepareResource",                                                                                                                            DV_DRA_V1ALPHA1  },
    [DV_DRA_V1ALPHA1] = {"v1alpha1.Node",        "/v1alpha1.Node/NodePrepareResource",
                   "/v1alpha1.Node/NodeUnprepareResource",                                                                                                                            DV_N_DRA_SERVICES},
};

const char *dv_dra_service_name(enum dv_dra_service service)
{
    return services[service].name;
}

const char *dv_dra_prepare_method(enum dv_dra_service service)
{
    return services[service].prepare;
}

const char *dv_dra_unprepare_method(enum dv_dra_service service)
{
    return services[service].unprepare;
}

enum dv_dra_service dv_dra_older(enum dv_dra_service service)
{
    return services[service].older;
}

static bool lists(const dv_str *versions, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(versions[i], dv_str_from_c(name)))
            return true;
    return false;
}

/* Whether the driver lists a version of its own, as drivers of 1.26 to 1.31 do; kubelets of that
 * time took any 1.x. */
static bool lists_old_version(const dv_str *versions, size_t n)
{
    struct dv_version version;
    struct dv_err err;

    for (size_t i = 0; i < n; i++)
        if (dv_version_parse_tolerant(versions[i], &version, &err) && version.major == 1)
            return true;
    return false;
}

static bool refuse(dv_str driver, dv_str endpoint, struct dv_buf *text, struct dv_err *err)
{
    struct dv_buf whole;

    dv_buf_init(&whole, text->max);
    dv_buf_printf(&whole,
                  "invalid supported gRPC versions of DRA driver plugin %.*s at endpoint %.*s: "
                  "%.*s",
                  DV_FMT(driver), DV_FMT(endpoint), DV_FMT(dv_buf_str(text)));
    dv_buf_clear(text);
    dv_buf_add(text, dv_buf_str(&whole));
    dv_buf_fini(&whole);
    return dv_fail(err, DV_INVALID_ARGUMENT, "%s", dv_buf_c(text));
}

/* Prints a list of quoted strings as Go does. */
static void add_quoted(const dv_str *versions, size_t n, struct dv_buf *text)
{
    dv_buf_add_char(text, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(text, ' ');
        dv_buf_add_json(text, versions[i]);
    }
    dv_buf_add_char(text, ']');
}

bool dv_dra_choose_service(dv_str driver, dv_str endpoint, const dv_str *versions,
                           size_t n_versions, bool is_strict, enum dv_dra_service *service,
                           struct dv_buf *text, struct dv_err *err)
{
    if (n_versions == 0) {
        dv_buf_add_c(text, "empty list of supported gRPC services (aka supported versions)");
        return refuse(driver, endpoint, text, err);
    }
    for (size_t i = 0; i < n_versions; i++)
        for (enum dv_dra_service s = DV_DRA_V1; s <= DV_DRA_V1BETA1; s++)
            if (dv_str_eq(versions[i], dv_str_from_c(services[s].name))) {
                *service = s;
                return true;
            }
    if (!is_strict && (lists(versions, n_versions, services[DV_DRA_V1ALPHA3].name) ||
                       lists_old_version(versions, n_versions))) {
        /* a guess: the first call finds out which old service the driver has */
        *service = DV_DRA_V1ALPHA3;
        return true;
    }
    dv_buf_add_c(text, "none of services supported by the plugin (");
    add_quoted(versions, n_versions, text);
    dv_buf_add_c(text, ") are supported by the kubelet "
                       "([\"v1.DRAPlugin\" \"v1beta1.DRAPlugin\"])");
    return refuse(driver, endpoint, text, err);
}

static const struct {
    const char *name;
    const char *method;
} health_services[] = {
    [DV_DRA_HEALTH_NONE] = {NULL,                         NULL                                      },
    [DV_DRA_HEALTH_V1] = {"v1.DRAResourceHealth",       "/v1.DRAResourceHealth/NodeWatchResources"},
    [DV_DRA_HEALTH_V1ALPHA1] = {"v1alpha1.DRAResourceHealth",
                            "/v1alpha1.DRAResourceHealth/NodeWatchResources"                        },
};

enum dv_dra_health dv_dra_choose_health(const dv_str *versions, size_t n_versions)
{
    for (enum dv_dra_health h = DV_DRA_HEALTH_V1; h <= DV_DRA_HEALTH_V1ALPHA1; h++)
        if (lists(versions, n_versions, health_services[h].name))
            return h;
    return DV_DRA_HEALTH_NONE;
}

const char *dv_dra_health_method(enum dv_dra_health health)
{
    return health_services[health].method;
}

const char *dv_dra_health_service(enum dv_dra_health health)
{
    return health_services[health].name ? health_services[health].name : "";
}

/* -- Instances ------------------------------------------------------------------------------ */

struct driver {
    dv_str name;
    struct dv_list instances; /* the oldest first */
    char text[];
};

struct dv_dra_drivers {
    struct dv_map by_name;
};

struct dv_dra_drivers *dv_dra_drivers_new(void)
{
    struct dv_dra_drivers *drivers = DV_ALLOC(struct dv_dra_drivers);

    dv_map_init(&drivers->by_name);
    return drivers;
}

void dv_dra_drivers_free(struct dv_dra_drivers *drivers)
{
    const struct dv_map_entry *entry;

    if (!drivers)
        return;
    for (size_t at = 0; (entry = dv_map_next(&drivers->by_name, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&drivers->by_name);
    free(drivers);
}

static struct driver *driver_of(struct dv_dra_drivers *drivers, dv_str name)
{
    struct driver *driver = dv_map_get(&drivers->by_name, name);
    char *at;

    if (driver)
        return driver;
    driver = dv_alloc(sizeof(*driver) + name.n + 1);
    at = driver->text;
    driver->name = dv_str_put(name, &at);
    dv_list_init(&driver->instances);
    (void)dv_map_set(&drivers->by_name, driver->name, driver);
    return driver;
}

struct dv_dra_instance *dv_dra_find(const struct dv_dra_drivers *drivers, dv_str name,
                                    dv_str endpoint)
{
    const struct driver *driver = dv_map_get(&drivers->by_name, name);
    struct dv_link *link;

    if (!driver)
        return NULL;
    DV_LIST_EACH (&driver->instances, link) {
        struct dv_dra_instance *instance = DV_CONTAINER(link, struct dv_dra_instance, link);

        if (dv_str_eq(instance->endpoint, endpoint))
            return instance;
    }
    return NULL;
}

bool dv_dra_add(struct dv_dra_drivers *drivers, struct dv_dra_instance *instance,
                struct dv_err *err)
{
    if (dv_dra_find(drivers, instance->driver, instance->endpoint))
        return dv_fail(err, DV_ALREADY_EXISTS,
                       "endpoint %.*s already registered for DRA driver plugin %.*s",
                       DV_FMT(instance->endpoint), DV_FMT(instance->driver));
    dv_list_push(&driver_of(drivers, instance->driver)->instances, &instance->link);
    return true;
}

void dv_dra_remove(struct dv_dra_drivers *drivers, struct dv_dra_instance *instance)
{
    struct driver *driver = dv_map_get(&drivers->by_name, instance->driver);

    dv_link_remove(&instance->link);
    if (driver && dv_list_is_empty(&driver->instances)) {
        (void)dv_map_remove(&drivers->by_name, driver->name);
        free(driver);
    }
}

struct dv_dra_instance *dv_dra_choose(const struct dv_dra_drivers *drivers, dv_str name,
                                      struct dv_err *err)
{
    const struct driver *driver = dv_map_get(&drivers->by_name, name);
    struct dv_link *link;

    if (name.n == 0) {
        (void)dv_fail(err, DV_NOT_FOUND, "DRA driver name is empty");
        return NULL;
    }
    if (!driver) {
        (void)dv_fail(err, DV_NOT_FOUND, "DRA driver %.*s is not registered", DV_FMT(name));
        return NULL;
    }
    for (link = driver->instances.head.prev; link != &driver->instances.head; link = link->prev) {
        struct dv_dra_instance *instance = DV_CONTAINER(link, struct dv_dra_instance, link);

        if (instance->is_connected)
            return instance;
    }
    return DV_CONTAINER(driver->instances.head.prev, struct dv_dra_instance, link);
}

bool dv_dra_next_name(const struct dv_dra_drivers *drivers, size_t *at, dv_str *name)
{
    const struct dv_map_entry *entry = dv_map_next(&drivers->by_name, at);

    if (entry)
        *name = entry->key;
    return entry != NULL;
}

bool dv_dra_is_known(const struct dv_dra_drivers *drivers, dv_str name)
{
    return dv_map_get(&drivers->by_name, name) != NULL;
}

bool dv_dra_is_usable(const struct dv_dra_drivers *drivers, dv_str name)
{
    struct dv_err err;
    const struct dv_dra_instance *instance = dv_dra_choose(drivers, name, &err);

    return instance && instance->is_connected;
}

enum dv_dra_wipe dv_dra_evaluate(const struct dv_dra_drivers *drivers, dv_str driver, bool has_plan)
{
    if (dv_dra_is_usable(drivers, driver))
        return has_plan ? DV_DRA_WIPE_CANCEL : DV_DRA_WIPE_KEEP;
    return has_plan ? DV_DRA_WIPE_KEEP : DV_DRA_WIPE_PLAN;
}
