/* oci_options.c - what device plugins want for a container, as edits in front of those of CDI. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "oci/oci.h"
#include "json/json.h"

/* The mount options that a container runtime makes from those of CRI: private, and with what is
 * mounted below. */
enum { N_MOUNT_OPTIONS = 3 };

static void add_mounts(const struct dv_oci_options *options, struct dv_arena *arena,
                       struct dv_cdi_container_edits *edits)
{
    edits->mounts = DV_NEW_ARRAY(arena, struct dv_cdi_mount, options->n_mounts);
    edits->n_mounts = options->n_mounts;
    for (size_t i = 0; i < options->n_mounts; i++) {
        struct dv_cdi_mount *mount = &edits->mounts[i];

        mount->host_path = options->mounts[i].host_path;
        mount->container_path = options->mounts[i].container_path;
        mount->type = DV_STR("bind");
        mount->options = DV_NEW_ARRAY(arena, dv_str, N_MOUNT_OPTIONS);
        mount->options[mount->n_options++] = DV_STR("rbind");
        mount->options[mount->n_options++] = DV_STR("rprivate");
        mount->options[mount->n_options++] =
            options->mounts[i].is_read_only ? DV_STR("ro") : DV_STR("rw");
    }
}

static struct dv_cdi_container_edits *edits_of(const struct dv_oci_options *options,
                                               struct dv_arena *arena)
{
    struct dv_cdi_container_edits *edits = DV_NEW(arena, struct dv_cdi_container_edits);

    edits->env = DV_NEW_ARRAY(arena, dv_str, options->n_env);
    edits->n_env = options->n_env;
    for (size_t i = 0; i < options->n_env; i++)
        edits->env[i] = dv_str_printf(arena, "%.*s=%.*s", DV_FMT(options->env[i].key),
                                      DV_FMT(options->env[i].value));
    edits->nodes = DV_NEW_ARRAY(arena, struct dv_cdi_node, options->n_devices);
    edits->n_nodes = options->n_devices;
    for (size_t i = 0; i < options->n_devices; i++)
        edits->nodes[i] = (struct dv_cdi_node){
            .path = options->devices[i].container_path,
            .host_path = options->devices[i].host_path,
            .permissions = options->devices[i].permissions,
        };
    add_mounts(options, arena, edits);
    return edits;
}

static bool add_annotations(struct dv_json *config, const struct dv_oci_options *options,
                            struct dv_arena *arena, struct dv_err *err)
{
    struct dv_json *annotations;

    if (options->n_annotations == 0)
        return true;
    annotations = dv_oci_object(config, DV_STR("annotations"), arena, err);
    for (size_t i = 0; annotations && i < options->n_annotations; i++)
        dv_json_set(annotations, options->annotations[i].key,
                    dv_json_new_str(options->annotations[i].value, arena), arena);
    return annotations != NULL;
}

struct dv_json *dv_oci_apply_options(const struct dv_json *config,
                                     const struct dv_oci_options *options,
                                     const struct dv_cdi_edits *edits,
                                     const struct dv_oci_host *host, struct dv_arena *arena,
                                     struct dv_err *err)
{
    struct dv_cdi_edits all = {.n_parts = edits->n_parts + 1};
    struct dv_json *edited;

    all.parts = DV_NEW_ARRAY(arena, struct dv_cdi_part, all.n_parts);
    all.parts[0].edits = edits_of(options, arena);
    for (size_t i = 0; i < edits->n_parts; i++)
        all.parts[i + 1] = edits->parts[i];
    edited = dv_oci_apply(config, &all, host, arena, err);
    return edited && add_annotations(edited, options, arena, err) ? edited : NULL;
}
