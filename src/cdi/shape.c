#include "cdi/shape.h"

#include "cdi/cdi.h"

static const char *const releases[DV_CDI_UNRELEASED] = {
    [DV_CDI_0_3_0] = "0.3.0", [DV_CDI_0_4_0] = "0.4.0", [DV_CDI_0_5_0] = "0.5.0",
    [DV_CDI_0_6_0] = "0.6.0", [DV_CDI_0_7_0] = "0.7.0", [DV_CDI_0_8_0] = "0.8.0",
    [DV_CDI_1_0_0] = "1.0.0", [DV_CDI_1_1_0] = "1.1.0",
};
static const char *const node_types[] = {"", "b", "c", "u", "p"};
static const char *const hook_names[] = {
    [DV_CDI_HOOK_PRESTART] = "prestart",
    [DV_CDI_HOOK_CREATE_RUNTIME] = "createRuntime",
    [DV_CDI_HOOK_CREATE_CONTAINER] = "createContainer",
    [DV_CDI_HOOK_START_CONTAINER] = "startContainer",
    [DV_CDI_HOOK_POSTSTART] = "poststart",
    [DV_CDI_HOOK_POSTSTOP] = "poststop",
};

const char *dv_cdi_release_text(enum dv_cdi_release release)
{
    return releases[release];
}

bool dv_cdi_release_parse(dv_str text, enum dv_cdi_release *release)
{
    if (dv_str_starts_with(text, DV_STR("v")))
        text = dv_str_slice(text, 1, text.n);
    for (size_t i = 0; i < DV_COUNT(releases); i++) {
        if (dv_str_eq(text, dv_str_from_c(releases[i]))) {
            *release = (enum dv_cdi_release)i;
            return true;
        }
    }
    return false;
}

const char *dv_cdi_node_type_text(enum dv_cdi_node_type type)
{
    return node_types[type];
}

const char *dv_cdi_hook_name_text(enum dv_cdi_hook_name name)
{
    return hook_names[name];
}

/* -- The tables ----------------------------------------------------------------------------- */

/* Rows with designators of different numbers end clang-format 14 in an array past its end. */
/* clang-format off */
#define FIELD(type, member, name, what)                                                            \
    .key = DV_STR_INIT(name), .kind = (what), .at = offsetof(type, member)
#define MANY(type, member, name, what)                                                             \
    FIELD(type, member, name, what), .n_at = offsetof(type, n_##member)
#define CHOICES(names) .choices = (names), .n_choices = DV_COUNT(names)
#define SHAPE(type, table)                                                                         \
    .fields = (table), .n_fields = DV_COUNT(table), .size_bytes = sizeof(type),                    \
    .align = _Alignof(type)

static const struct dv_cdi_field node_fields[] = {
    {FIELD(struct dv_cdi_node, path, "path", DV_CDI_TEXT), .is_required = true},
    {FIELD(struct dv_cdi_node, host_path, "hostPath", DV_CDI_TEXT), .since = DV_CDI_0_5_0},
    {FIELD(struct dv_cdi_node, type, "type", DV_CDI_CHOICE), CHOICES(node_types)},
    {FIELD(struct dv_cdi_node, major, "major", DV_CDI_COUNT)},
    {FIELD(struct dv_cdi_node, minor, "minor", DV_CDI_COUNT)},
    {FIELD(struct dv_cdi_node, file_mode, "fileMode", DV_CDI_NUMBER)},
    {FIELD(struct dv_cdi_node, permissions, "permissions", DV_CDI_TEXT)},
    {FIELD(struct dv_cdi_node, uid, "uid", DV_CDI_NUMBER)},
    {FIELD(struct dv_cdi_node, gid, "gid", DV_CDI_NUMBER)},
};
static const struct dv_cdi_shape node_shape = {SHAPE(struct dv_cdi_node, node_fields),
                                               .check = dv_cdi_check_node};

static const struct dv_cdi_field net_device_fields[] = {
    {FIELD(struct dv_cdi_net_device, host_name, "hostInterfaceName", DV_CDI_TEXT),
     .is_required = true},
    {FIELD(struct dv_cdi_net_device, name, "name", DV_CDI_TEXT), .is_required = true},
};
static const struct dv_cdi_shape net_device_shape = {
    SHAPE(struct dv_cdi_net_device, net_device_fields)};

static const struct dv_cdi_field hook_fields[] = {
    {FIELD(struct dv_cdi_hook, name, "hookName", DV_CDI_CHOICE), CHOICES(hook_names),
     .is_required = true},
    {FIELD(struct dv_cdi_hook, path, "path", DV_CDI_TEXT), .is_required = true},
    {MANY(struct dv_cdi_hook, args, "args", DV_CDI_TEXTS)},
    {MANY(struct dv_cdi_hook, env, "env", DV_CDI_ENV)},
    {FIELD(struct dv_cdi_hook, timeout_s, "timeout", DV_CDI_NUMBER)},
};
static const struct dv_cdi_shape hook_shape = {SHAPE(struct dv_cdi_hook, hook_fields),
                                               .check = dv_cdi_check_hook};

static const struct dv_cdi_field mount_fields[] = {
    {FIELD(struct dv_cdi_mount, host_path, "hostPath", DV_CDI_TEXT), .is_required = true},
    {FIELD(struct dv_cdi_mount, container_path, "containerPath", DV_CDI_TEXT), .is_required = true},
    {MANY(struct dv_cdi_mount, options, "options", DV_CDI_TEXTS)},
    {FIELD(struct dv_cdi_mount, type, "type", DV_CDI_TEXT), .since = DV_CDI_0_4_0},
};
static const struct dv_cdi_shape mount_shape = {SHAPE(struct dv_cdi_mount, mount_fields)};

static const struct dv_cdi_field rdt_fields[] = {
    {FIELD(struct dv_cdi_rdt, clos_id, "closID", DV_CDI_TEXT)},
    {FIELD(struct dv_cdi_rdt, l3_schema, "l3CacheSchema", DV_CDI_TEXT)},
    {FIELD(struct dv_cdi_rdt, mem_bw_schema, "memBwSchema", DV_CDI_TEXT)},
    {MANY(struct dv_cdi_rdt, schemata, "schemata", DV_CDI_TEXTS), .since = DV_CDI_1_1_0},
    {FIELD(struct dv_cdi_rdt, has_cmt, "enableCMT", DV_CDI_FLAG), .removed = DV_CDI_1_1_0},
    {FIELD(struct dv_cdi_rdt, has_mbm, "enableMBM", DV_CDI_FLAG), .removed = DV_CDI_1_1_0},
    {FIELD(struct dv_cdi_rdt, has_monitoring, "enableMonitoring", DV_CDI_FLAG),
     .since = DV_CDI_1_1_0},
};
static const struct dv_cdi_shape rdt_shape = {SHAPE(struct dv_cdi_rdt, rdt_fields),
                                              .check = dv_cdi_check_rdt};

static const struct dv_cdi_field edits_fields[] = {
    {MANY(struct dv_cdi_container_edits, env, "env", DV_CDI_ENV)},
    {MANY(struct dv_cdi_container_edits, nodes, "deviceNodes", DV_CDI_LIST), .shape = &node_shape},
    {MANY(struct dv_cdi_container_edits, net_devices, "netDevices", DV_CDI_LIST),
     .shape = &net_device_shape, .since = DV_CDI_1_1_0},
    {MANY(struct dv_cdi_container_edits, hooks, "hooks", DV_CDI_LIST), .shape = &hook_shape},
    {MANY(struct dv_cdi_container_edits, mounts, "mounts", DV_CDI_LIST), .shape = &mount_shape},
    {FIELD(struct dv_cdi_container_edits, rdt, "intelRdt", DV_CDI_POINTER), .shape = &rdt_shape,
     .since = DV_CDI_0_7_0},
    {MANY(struct dv_cdi_container_edits, gids, "additionalGids", DV_CDI_NUMBERS),
     .since = DV_CDI_0_7_0},
};
const struct dv_cdi_shape dv_cdi_edits_shape = {SHAPE(struct dv_cdi_container_edits, edits_fields),
                                                .check = dv_cdi_check_edits};

static const struct dv_cdi_field device_fields[] = {
    {FIELD(struct dv_cdi_device, name, "name", DV_CDI_TEXT), .is_required = true},
    {MANY(struct dv_cdi_device, annotations, "annotations", DV_CDI_PAIRS), .since = DV_CDI_0_6_0},
    {FIELD(struct dv_cdi_device, edits, "containerEdits", DV_CDI_INLINE),
     .shape = &dv_cdi_edits_shape},
};
static const struct dv_cdi_shape device_shape = {SHAPE(struct dv_cdi_device, device_fields),
                                                 .check = dv_cdi_check_device};

static const struct dv_cdi_field spec_fields[] = {
    {FIELD(struct dv_cdi_spec, version, "cdiVersion", DV_CDI_TEXT), .is_required = true},
    {FIELD(struct dv_cdi_spec, kind, "kind", DV_CDI_TEXT), .is_required = true},
    {MANY(struct dv_cdi_spec, annotations, "annotations", DV_CDI_PAIRS), .since = DV_CDI_0_6_0},
    {MANY(struct dv_cdi_spec, devices, "devices", DV_CDI_LIST), .shape = &device_shape},
    {FIELD(struct dv_cdi_spec, edits, "containerEdits", DV_CDI_INLINE),
     .shape = &dv_cdi_edits_shape},
};
const struct dv_cdi_shape dv_cdi_spec_shape = {SHAPE(struct dv_cdi_spec, spec_fields),
                                               .check = dv_cdi_check_spec};
/* clang-format on */
