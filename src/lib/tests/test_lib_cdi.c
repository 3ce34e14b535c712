#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "davit/cdi.h"

#include "base/arena.h"
#include "base/defs.h"
#include "base/file.h"

#define KIND "serial.example.com/port"

static const char *const env[] = {"PORT=/dev/ttyS0"};
static const char *const options[] = {"ro", "bind"};
static const struct davit_cdi_node node = {
    .path = "/dev/modem", .host_path = "/dev/ttyS0", .permissions = "rw"};
static const struct davit_cdi_mount mount = {
    .host_path = "/etc/modem", .container_path = "/etc/modem", .options = options, .n_options = 2};
static const struct davit_cdi_device device = {.name = "port-0",
                                               .env = env,
                                               .n_env = 1,
                                               .nodes = &node,
                                               .n_nodes = 1,
                                               .mounts = &mount,
                                               .n_mounts = 1};

static void a_spec_is_written_replaced_and_removed(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char root[] = "/tmp/davit-cdi-XXXXXX";
    struct davit_error error;
    struct dv_err err;
    char dir[64];
    dv_str path;
    dv_str text;

    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(dir, sizeof(dir), "%s/cdi", root); /* it is made */
    struct davit_cdi_spec spec = {
        .dir = dir, .kind = KIND, .id = "uid-1", .devices = &device, .n_devices = 1};

    path = dv_str_printf(arena, "%s/serial.example.com-port_uid-1.json", dir);
    for (int i = 0; i < 2; i++) {
        assert_true(davit_cdi_write(&spec, &error));
        assert_true(dv_file_read(path, 4096, arena, &text, &err));
        assert_str(text,
                   "{\"cdiVersion\":\"0.5.0\",\"kind\":\"" KIND "\",\"devices\":[{\"name\":"
                   "\"port-0\",\"containerEdits\":{\"env\":[\"PORT=/dev/ttyS0\"],\"deviceNodes\":"
                   "[{\"path\":\"/dev/modem\",\"hostPath\":\"/dev/ttyS0\",\"permissions\":\"rw\"}],"
                   "\"mounts\":[{\"hostPath\":\"/etc/modem\",\"containerPath\":\"/etc/modem\","
                   "\"options\":[\"ro\",\"bind\"]}]}}]}");
    }
    for (int i = 0; i < 2; i++)
        assert_true(davit_cdi_remove(dir, KIND, "uid-1", &error));
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
    assert_int_equal(rmdir(root), 0);
}

static void what_no_runtime_takes_is_refused(void **state)
{
    static const struct davit_cdi_device nameless = {.name = "", .env = env, .n_env = 1};
    static const struct davit_cdi_device bare = {.name = "a"};
    static const struct {
        const char *kind;
        const char *id;
        const struct davit_cdi_device *device;
    } cases[] = {
        {NULL,    "a",   &device  },
        {"port",  "a",   &device  },
        {"a/b/c", "a",   &device  },
        {"-x/b",  "a",   &device  },
        {KIND,    "a/b", &device  },
        {KIND,    "",    &device  },
        {KIND,    NULL,  &device  },
        {KIND,    "a",   &nameless},
        {KIND,    "a",   &bare    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct davit_cdi_spec spec = {.dir = "/nonexistent/cdi",
                                            .kind = cases[i].kind,
                                            .id = cases[i].id,
                                            .devices = cases[i].device,
                                            .n_devices = 1};
        struct davit_error error = {0};

        assert_false(davit_cdi_write(&spec, &error));
        assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
        assert_true(strlen(error.message) > 0);
    }
}

static void names_are_kind_and_device(void **state)
{
    char name[DAVIT_CDI_NAME_BYTES];
    char narrow[8];

    (void)state;
    assert_true(davit_cdi_name(KIND, "port-0", name, sizeof(name)));
    assert_string_equal(name, KIND "=port-0");
    assert_false(davit_cdi_name(KIND, "port-0", narrow, sizeof(narrow)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_is_written_replaced_and_removed),
        cmocka_unit_test(what_no_runtime_takes_is_refused),
        cmocka_unit_test(names_are_kind_and_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
