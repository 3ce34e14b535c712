#include "builtin/builtin.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "builtin/builtin_state.h"
#include "davit/dra.h"
#include "lib/lib_embed.h"

/* ---- offers ---- */

struct dv_builtin_config *dv_builtin_config_ref(struct dv_builtin_config *config)
{
    config->n_refs++;
    return config;
}

void dv_builtin_config_unref(struct dv_builtin_config *config)
{
    if (!config || --config->n_refs > 0)
        return;
    dv_arena_free(config->arena);
    free(config);
}

static bool read_offers(const struct dv_builtin_options *options, struct dv_arena *arena,
                        struct dv_offers *offers, struct dv_err *err)
{
    struct dv_offers read = {0};
    dv_str text;

    for (size_t i = 0; i < options->n_offers; i++)
        if (!dv_offers_add_text(&read, options->offers[i], arena, err))
            return false;
    if (options->file.n > 0 &&
        (!dv_file_read(options->file, DV_OFFER_FILE_BYTES_MAX, arena, &text, err) ||
         !dv_offers_add_file(&read, options->file, text, arena, err)))
        return false;
    *offers = read;
    return true;
}

static struct dv_builtin_config *read_config(const struct dv_builtin_options *options,
                                             struct dv_err *err)
{
    struct dv_builtin_config *config = DV_ALLOC(struct dv_builtin_config);

    config->arena = dv_arena_new();
    config->n_refs = 1;
    if (read_offers(options, config->arena, &config->offers, err))
        return config;
    dv_builtin_config_unref(config);
    return NULL;
}

bool dv_builtin_check(const struct dv_builtin_options *options, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_offers offers;

    return read_offers(options, arena, &offers, err);
}

bool dv_builtin_reload(struct dv_builtin_driver *builtin, struct dv_err *err)
{
    struct dv_builtin_config *config = read_config(&builtin->options, err);

    if (!config)
        return false;
    dv_builtin_config_unref(builtin->config);
    builtin->config = config;
    dv_log(DV_LOG_INFO, "builtin: offers were read", DV_F_U64("offers", config->offers.n));
    dv_builtin_look_soon(builtin);
    dv_builtin_classes_look(builtin);
    return true;
}

/* ---- opening ---- */

static void copy_options(struct dv_builtin_driver *builtin, const struct dv_builtin_options *from)
{
    struct dv_builtin_options *options = &builtin->options;
    dv_str *offers = DV_NEW_ARRAY(builtin->arena, dv_str, from->n_offers);

    *options = *from;
    for (size_t i = 0; i < from->n_offers; i++)
        offers[i] = dv_str_copy(from->offers[i], builtin->arena);
    options->offers = offers;
    options->node_name = dv_str_copy(from->node_name, builtin->arena);
    options->kubelet_dir = dv_str_copy(from->kubelet_dir, builtin->arena);
    options->dev_dir = dv_str_copy(from->dev_dir, builtin->arena);
    options->sys_dir = dv_str_copy(from->sys_dir, builtin->arena);
    options->cdi_dir = dv_str_copy(from->cdi_dir, builtin->arena);
    options->file = dv_str_copy(from->file, builtin->arena);
}

static void look_now(struct dv_builtin_driver *builtin)
{
    struct dv_offer_list before;
    struct dv_builtin_look *look = dv_builtin_look_new(builtin, &before);

    dv_builtin_look_take(look, builtin->options.dev_dir, builtin->options.sys_dir, &before);
    builtin->now = look;
}

static bool open_driver(struct dv_builtin_driver *builtin, struct dv_err *err)
{
    struct dv_arena *arena = builtin->arena;
    const struct davit_dra_options options = {
        .driver = DV_OFFER_DRIVER,
        .node = dv_str_to_c(builtin->options.node_name, arena),
        .flags = DAVIT_DRA_PARALLEL | DAVIT_DRA_ONE_SOCKET | DAVIT_DRA_HEALTH,
        .plugin_dir = dv_str_to_c(builtin->record_dir, arena),
        .registry_dir = dv_str_to_c(
            dv_str_printf(arena, "%.*s/plugins_registry", DV_FMT(builtin->options.kubelet_dir)),
            arena),
        .ctx = builtin,
        .prepare = dv_builtin_prepare,
        .unprepare = dv_builtin_unprepare,
    };

    builtin->dra = dv_lib_dra_embed(builtin->loop, &options, builtin->options.cluster, err);
    return builtin->dra != NULL;
}

struct dv_builtin_driver *
dv_builtin_open(struct dv_loop *loop, const struct dv_builtin_options *options, struct dv_err *err)
{
    struct dv_builtin_driver *builtin = DV_ALLOC(struct dv_builtin_driver);

    builtin->loop = loop;
    builtin->arena = dv_arena_new();
    builtin->n_open = 1; /* itself */
    builtin->uevent_fd = -1;
    dv_map_init(&builtin->claims);
    dv_list_init(&builtin->writes);
    copy_options(builtin, options);
    builtin->config = read_config(&builtin->options, err);
    if (!builtin->config || !dv_builtin_claims_load(builtin, err)) {
        dv_builtin_close(builtin, NULL, NULL);
        return NULL;
    }
    look_now(builtin);
    if (!open_driver(builtin, err)) {
        dv_builtin_close(builtin, NULL, NULL);
        return NULL;
    }
    dv_log(DV_LOG_INFO, "builtin: offers of this machine",
           DV_F_U64("offers", builtin->config->offers.n),
           DV_F_U64("devices", builtin->now->list.n_devices), DV_F_U64("held", builtin->claims.n));
    dv_builtin_classes_open(builtin);
    dv_builtin_watch_open(builtin);
    dv_builtin_publish(builtin);
    return builtin;
}

void dv_builtin_specs_changed(struct dv_builtin_driver *builtin)
{
    for (size_t i = 0; i < builtin->config->offers.n; i++)
        for (size_t k = 0; k < builtin->config->offers.v[i].n_matches; k++)
            if (builtin->config->offers.v[i].matches[k].kind == DV_OFFER_CDI) {
                dv_builtin_look_soon(builtin);
                return;
            }
}

/* ---- closing ---- */

static void free_builtin(struct dv_builtin_driver *builtin)
{
    dv_closed_fn *closed = builtin->closed;
    void *ctx = builtin->closed_ctx;

    dv_builtin_claims_fini(builtin);
    dv_builtin_look_free(builtin->loop, builtin->now);
    dv_builtin_config_unref(builtin->config);
    dv_arena_free(builtin->arena);
    free(builtin);
    if (closed)
        closed(ctx);
}

void dv_builtin_part_closed(void *ctx)
{
    struct dv_builtin_driver *builtin = ctx;

    if (--builtin->n_open == 0)
        free_builtin(builtin);
}

void dv_builtin_close(struct dv_builtin_driver *builtin, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;

    builtin->is_closing = true;
    builtin->closed = closed;
    builtin->closed_ctx = ctx;
    dv_task_cancel(&builtin->tell);
    dv_builtin_watch_close(builtin);
    DV_LIST_EACH (&builtin->writes, link)
        builtin->n_open++; /* each ends by itself */
    if (builtin->dra) {
        dv_builtin_classes_close(builtin);
        builtin->n_open++;
        dv_lib_dra_remove(builtin->dra, dv_builtin_part_closed, builtin);
        builtin->dra = NULL;
    }
    dv_builtin_part_closed(builtin);
}

/* ---- what can be seen ---- */

static void run_tell(struct dv_task *task)
{
    struct dv_builtin_driver *builtin = DV_CONTAINER(task, struct dv_builtin_driver, tell);

    if (builtin->options.changed)
        builtin->options.changed(builtin->options.ctx);
}

void dv_builtin_tell(struct dv_builtin_driver *builtin)
{
    if (!builtin->is_closing)
        dv_task_post(&builtin->tell, builtin->loop, run_tell);
}

struct dv_builtin_view dv_builtin_view(const struct dv_builtin_driver *builtin)
{
    return (struct dv_builtin_view){&builtin->now->config->offers, &builtin->now->list};
}

dv_str dv_builtin_holder(const struct dv_builtin_driver *builtin, dv_str device, size_t *n_holders)
{
    const struct dv_map_entry *entry;
    dv_str first = DV_STR("");

    *n_holders = 0;
    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;) {
        const struct dv_offer_record *record = &((struct dv_builtin_claim *)entry->value)->record;

        for (size_t i = 0; i < record->n_devices; i++)
            if (dv_str_eq(record->devices[i].name, device)) {
                first = *n_holders == 0 ? record->claim : first;
                (*n_holders)++;
                break;
            }
    }
    return first;
}
