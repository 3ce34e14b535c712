/* test_engine_bundle.c - the config of a bundle that is started from another folder. */
#include "engines/tests/test_engine.h"

#include "cdi/cdi.h"
#include "oci/oci.h"
#include "json/json.h"

static bool look(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                 struct dv_err *err)
{
    (void)host;
    if (!dv_str_eq(path, DV_STR("/dev/a")))
        return dv_fail(err, DV_NOT_FOUND, "%.*s: no such file", DV_FMT(path));
    *node = (struct dv_oci_node){DV_CDI_NODE_CHAR, 1, 3};
    return true;
}

static const struct dv_oci_host machine = {look};

/* The config as JSON, with the device node granted; or the message. */
static const char *edit(const char *config, const char *node, struct dv_arena *arena)
{
    const struct dv_oci_device device = {DV_STR("/dev/a"), dv_str_from_c(node), DV_STR("rw")};
    const struct dv_oci_options options = {.devices = &device, .n_devices = 1};
    const struct dv_engine_grant grant = {.options = &options};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *edited;
    struct dv_json *doc;
    struct dv_err err;

    dv_buf_init(&buf, 65536);
    doc = dv_yaml_parse(dv_str_from_c(config), NULL, arena, &err);
    assert_ok(doc, &err);
    edited = dv_engine_bundle_config(doc, DV_STR("/bundle"), &grant, &machine, arena, &err);
    if (!edited)
        return dv_str_to_c(dv_str_from_c(err.msg), arena);
    dv_json_print(edited, NULL, &buf);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

#define DEVICE                                                                                     \
    "\"linux\":{\"devices\":[{\"path\":\"/dev/a\",\"type\":\"c\",\"major\":1,\"minor\":3}],"       \
    "\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,"          \
    "\"access\":\"rw\"}]}}"

static void paths_are_those_of_the_first_folder(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    assert_str(dv_str_from_c(edit("{root: {path: rootfs}}", "/dev/a", arena)),
               "{\"root\":{\"path\":\"/bundle/rootfs\"}," DEVICE "}");
    assert_str(dv_str_from_c(edit("{root: {path: /r}}", "/dev/a", arena)),
               "{\"root\":{\"path\":\"/r\"}," DEVICE "}");
    assert_str(
        dv_str_from_c(edit("{mounts: [{destination: /d, source: data, type: bind}, "
                           "{destination: /e, source: data, options: [rbind]}, "
                           "{destination: /proc, source: proc, type: proc}]}",
                           "/dev/a", arena)),
        "{\"mounts\":[{\"destination\":\"/d\",\"source\":\"/bundle/data\",\"type\":\"bind\"},"
        "{\"destination\":\"/e\",\"source\":\"/bundle/data\",\"options\":[\"rbind\"]},"
        "{\"destination\":\"/proc\",\"source\":\"proc\",\"type\":\"proc\"}]," DEVICE "}");
}

static void a_device_that_is_gone_is_named(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str message = dv_str_from_c(edit("{}", "/dev/gone", arena));

    (void)state;
    assert_true(dv_str_find(message, DV_STR("/dev/gone")) < message.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_those_of_the_first_folder),
        cmocka_unit_test(a_device_that_is_gone_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
