/* What a driver's answers become, and which mistakes in them fail the call. */
#include "support/dvtest.h"

#include <string.h>

#include "lib/tests/test_asking.h"
#include "lib/tests/test_lib_node.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

static void add_all(struct davit_call *call)
{
    davit_allocate_add_env(call, "TTY", "a");
    davit_allocate_add_env(call, "EMPTY", "");
    davit_allocate_add_mount(call, "/host", "/inside", true);
    davit_allocate_add_mount(call, "/host2", "/inside2", false);
    davit_allocate_add_device(call, "/dev/a", NULL, "rw");
    davit_allocate_add_device(call, "/dev/b", "/dev/c", "rwm");
    davit_allocate_add_annotation(call, "example.com/k", "v");
    davit_allocate_add_cdi(call, "example.com/tty=a");
}

static void all_that_a_container_needs_goes_back(void **state)
{
    struct node *node = *state;
    struct dv_arena *arena = node->arena;
    const DpV1beta1__ContainerAllocateResponse *got;
    struct probe probe;

    asked.add = add_all;
    probe_run(&probe, node, ALLOCATE, &make_ask("a,b", arena)->base);
    assert_int_equal(probe.err.code, DV_OK);
    assert_str(dv_buf_str(&asked.ids), "a,b;");
    assert_int_equal(read_answer(&probe, arena)->n_container_responses, 1);
    got = read_answer(&probe, arena)->container_responses[0];
    assert_int_equal(got->n_envs, 2);
    assert_string_equal(got->envs[0]->key, "TTY");
    assert_string_equal(got->envs[0]->value, "a");
    assert_string_equal(got->envs[1]->key, "EMPTY");
    assert_string_equal(got->envs[1]->value, "");
    assert_int_equal(got->n_mounts, 2);
    assert_string_equal(got->mounts[0]->host_path, "/host");
    assert_string_equal(got->mounts[0]->container_path, "/inside");
    assert_true(got->mounts[0]->read_only);
    assert_false(got->mounts[1]->read_only);
    assert_int_equal(got->n_devices, 2);
    assert_string_equal(got->devices[0]->container_path, "/dev/a");
    assert_string_equal(got->devices[1]->container_path, "/dev/c");
    assert_string_equal(got->devices[1]->host_path, "/dev/b");
    assert_string_equal(got->devices[1]->permissions, "rwm");
    assert_int_equal(got->n_annotations, 1);
    assert_string_equal(got->annotations[0]->key, "example.com/k");
    assert_int_equal(got->n_cdi_devices, 1);
    assert_string_equal(got->cdi_devices[0]->name, "example.com/tty=a");
    probe_fini(&probe);
}

/* An answer with one thing in it. */
struct thing {
    char kind; /* env, mount, device, annotation, cdi, preference: the first letter */
    const char *texts[3];
};

static const struct thing *thing_to_add;

static void add_thing(struct davit_call *call)
{
    const char *const *texts = thing_to_add->texts;

    switch (thing_to_add->kind) {
    case 'e':
        davit_allocate_add_env(call, texts[0], texts[1]);
        break;
    case 'm':
        davit_allocate_add_mount(call, texts[0], texts[1], true);
        break;
    case 'd':
        davit_allocate_add_device(call, texts[0], texts[1], texts[2]);
        break;
    case 'a':
        davit_allocate_add_annotation(call, texts[0], texts[1]);
        break;
    case 'c':
        davit_allocate_add_cdi(call, texts[0]);
        break;
    default:
        davit_prefer_add_id(call, texts[0]);
        break;
    }
    davit_allocate_add_env(call, NULL, NULL); /* the first mistake counts */
}

static void mistakes_in_an_answer_are_named(void **state)
{
    static const struct {
        struct thing thing;
        const char *text;
    } rows[] = {
        {{'e', {"A=B", ""}},            "env name \"A=B\" has a ="                    },
        {{'e', {"", ""}},               "an env's name is empty"                      },
        {{'e', {"A", NULL}},            "an env's value is missing"                   },
        {{'e', {"A", "v"}},             "an env's name is missing"                    },
        {{'m', {"host", "/in"}},        "a mount's host path \"host\" is not absolute"},
        {{'m', {"/host", ""}},          "a mount's container path \"\" is not"        },
        {{'d', {"/dev/a", "a", "rw"}},  "a device's container path \"a\" is not"      },
        {{'d', {"/dev/a", NULL, "rx"}}, "permissions \"rx\" are not of r, w, m"       },
        {{'d', {"/dev/a", NULL, ""}},   "a device's permissions is empty"             },
        {{'a', {"\xff", ""}},           "an annotation's key is not UTF-8"            },
        {{'c', {"example.com/=a"}},     "CDI name \"example.com/=a\" is not like"     },
        {{'c', {"/class=a"}},           "is not like vendor.com/class=name"           },
        {{'c', {"example.com/class"}},  "is not like vendor.com/class=name"           },
        {{'p', {"a"}},                  "what this call did not ask for"              },
    };
    struct node *node = *state;
    struct probe probe;

    asked.add = add_thing;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        thing_to_add = &rows[i].thing;
        probe_run(&probe, node, ALLOCATE, &make_ask("a", node->arena)->base);
        assert_err(&probe.err, DV_INTERNAL, rows[i].text);
        probe_fini(&probe);
    }
}

static void add_too_much(struct davit_call *call)
{
    static char value[1 << 20];

    memset(value, 'x', sizeof(value) - 1);
    for (int i = 0; i < 5; i++)
        davit_allocate_add_env(call, "A", value);
}

static void an_answer_that_no_agent_takes_fails_the_call(void **state)
{
    struct node *node = *state;
    struct probe probe;

    asked.add = add_too_much;
    probe_run(&probe, node, ALLOCATE, &make_ask("a", node->arena)->base);
    assert_err(&probe.err, DV_RESOURCE_EXHAUSTED, "the driver's answer");
    probe_fini(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CALL_TEST(name) cmocka_unit_test_setup_teardown(name, asking_start, asking_end)
        CALL_TEST(all_that_a_container_needs_goes_back),
        CALL_TEST(mistakes_in_an_answer_are_named),
        CALL_TEST(an_answer_that_no_agent_takes_fails_the_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
