/* test_manifest.c - static pods as their files say. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "pod/agent/mirror_step.h"
#include "pod/static/manifest.h"
#include "resource/resource.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
#define SPEC "spec: {containers: [{name: c, image: x}]}\n"

static struct dv_object *read_at(const char *text, const char *path, const char *node,
                                 struct dv_err *err)
{
    const struct dv_manifest_place place = {
        dv_str_from_c(path), dv_str_from_c(node), {.seconds = 86400, .is_set = true}
    };

    return dv_manifest_read(dv_str_from_c(text), &place, err);
}

static const char *annotation(const struct dv_object *pod, const char *key, struct dv_arena *arena)
{
    const struct dv_str_entry *entry =
        dv_entry_find(pod->meta->annotations, pod->meta->n_annotations, dv_str_from_c(key));

    return entry ? dv_str_to_c(entry->value, arena) : "";
}

static void gives_what_an_api_would(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    struct dv_object *pod = read_at(HEAD SPEC, "/m/web.yaml", "node-1", &err);
    const struct dv_api_pod *value;

    (void)state;
    assert_ok(pod, &err);
    value = pod->value;
    assert_str(pod->meta->name, "web-node-1");
    assert_str(pod->meta->namespace, "default");
    assert_int_equal(pod->meta->uid.n, 32);
    assert_string_equal(annotation(pod, DV_STATIC_HASH, arena), dv_str_to_c(pod->meta->uid, arena));
    assert_string_equal(annotation(pod, DV_STATIC_SOURCE, arena), "file");
    assert_string_equal(annotation(pod, DV_STATIC_SEEN, arena), "1970-01-02T00:00:00Z");
    assert_str(value->spec.node_name, "node-1");
    assert_str(value->spec.restart_policy, "Always");
    assert_str(value->status.phase, "Pending");
    assert_int_equal(value->spec.n_tolerations, 1);
    assert_str(value->spec.tolerations[0].operator, "Exists");
    assert_str(value->spec.tolerations[0].effect, "NoExecute");
    dv_object_unref(pod);
}

static void a_uid_is_of_content_node_and_path(void **state)
{
    static const struct {
        const char *text;
        const char *path;
        const char *node;
        bool is_same;
    } cases[] = {
        {HEAD SPEC,                                                                    "/m/a", "n1", true },
        {"# another comment\n" HEAD "spec:\n  containers:\n  - {image: x, name: c}\n", "/m/a", "n1",
         true                                                                                             },
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\"},\"spec\":"
         "{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}",              "/m/a", "n1", true },
        {HEAD SPEC,                                                                    "/m/b", "n1", false},
        {HEAD SPEC,                                                                    "/m/a", "n2", false},
        {HEAD "spec: {containers: [{name: c, image: z}]}\n",                           "/m/a", "n1", false},
    };
    struct dv_err err;
    struct dv_object *first = read_at(HEAD SPEC, "/m/a", "n1", &err);

    (void)state;
    assert_ok(first, &err);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_object *pod = read_at(cases[i].text, cases[i].path, cases[i].node, &err);

        assert_ok(pod, &err);
        assert_int_equal(dv_str_eq(pod->meta->uid, first->meta->uid), cases[i].is_same);
        assert_int_equal(dv_manifest_eq(pod, first), cases[i].is_same);
        dv_object_unref(pod);
    }
    dv_object_unref(first);
}

static void a_uid_that_is_given_stays(void **state)
{
    struct dv_err err;
    struct dv_object *a = read_at(
        "{apiVersion: v1, kind: Pod, metadata: {name: w, namespace: ml, uid: u1}, " SPEC "}",
        "/m/a", "n1", &err);
    struct dv_object *b;

    (void)state;
    assert_ok(a, &err);
    b = read_at("{apiVersion: v1, kind: Pod, metadata: {name: w, namespace: ml, uid: u1}, spec: "
                "{containers: [{name: c, image: z}]}}",
                "/m/a", "n1", &err);
    assert_ok(b, &err);
    assert_str(a->meta->uid, "u1");
    assert_str(a->meta->namespace, "ml");
    assert_false(dv_manifest_eq(a, b));
    dv_object_unref(a);
    dv_object_unref(b);
}

static void refuses_what_cannot_be(void **state)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"",                                                                                       "expected an object"              },
        {"{]",                                                                                     "line 1"                          },
        {"[]",                                                                                     "expected an object"              },
        {"apiVersion: v1\nkind: Service\n",                                                        "must be Pod, not \"Service\""    },
        {"apiVersion: v2\nkind: Pod\n",                                                            "must be v1, not \"v2\""          },
        {"kind: Pod\n",                                                                            "apiVersion"                      },
        {"apiVersion: v1\nkind: Pod\n" SPEC,                                                       "metadata.name: Required value"   },
        {HEAD "spec: {containers: []}\n",                                                          "spec.containers"                 },
        {HEAD "spec: {containers: [{name: C_, image: x}]}\n",                                      "spec.containers[0].name"         },
        {HEAD "spec: {containers: 5}\n",                                                           "spec.containers"                 },
        {"{apiVersion: v1, kind: Pod, metadata: {name: w, uid: ../x}, " SPEC "}",                  "metadata.uid"                    },
        {"{apiVersion: v1, kind: Pod, metadata: {name: w, uid: ..}, " SPEC "}",                    "metadata.uid"                    },
        {HEAD SPEC "---\n" HEAD SPEC,                                                              ""                                },
        {HEAD "spec: {serviceAccountName: s, containers: [{name: c, image: x}]}\n",
         "may not reference serviceaccounts"                                                                                         },
        {HEAD "spec: {volumes: [{name: v, secret: {secretName: s}}], containers: [{name: c, image: "
              "x}]}\n",                                                                   "may not reference secrets"       },
        {HEAD "spec: {volumes: [{name: v, configMap: {name: s}}], containers: [{name: c, image: "
              "x}]}\n",                                                                   "may not reference configmaps"    },
        {HEAD "spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: s}}]}]}\n",
         "may not reference configmaps"                                                                                              },
        {HEAD "spec: {imagePullSecrets: [{name: s}], containers: [{name: c, image: x}]}\n",
         "may not reference secrets"                                                                                                 },
        {HEAD "spec: {resourceClaims: [{name: g, resourceClaimName: c}], containers: [{name: c, "
              "image: x}]}\n",                                                            "may not reference resourceclaims"},
        {HEAD "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: s}}], containers: "
              "[{name: c, image: x}]}\n",                                                 "may not reference"               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err = {0};

        if (read_at(cases[i].text, "/m/a", "n1", &err))
            fail_msg("%s: is taken", cases[i].text);
        if (!strstr(err.msg, cases[i].error))
            fail_msg("%s: %s", cases[i].text, err.msg);
    }
}

/* ---- mirrors ---- */

static void says_what_to_do_about_a_mirror(void **state)
{
    static const struct {
        const char *what;
        struct dv_mirror_facts facts;
        enum dv_mirror_step step;
    } cases[] = {
        {"not all pods are known",    {.is_there = true},                            DV_MIRROR_WAIT  },
        {"nobody's",                  {.is_settled = true, .is_there = true},        DV_MIRROR_REMOVE},
        {"neither",                   {.is_settled = true},                          DV_MIRROR_FORGET},
        {"a new pod",
         {.is_settled = true, .has_pod = true, .is_wanted = true, .has_node = true},
         DV_MIRROR_CREATE                                                                            },
        {"without a Node",
         {.is_settled = true, .has_pod = true, .is_wanted = true},
         DV_MIRROR_WAIT                                                                              },
        {"its own",
         {.is_settled = true,
          .has_pod = true,
          .is_wanted = true,
          .is_there = true,
          .is_same = true},
         DV_MIRROR_WAIT                                                                              },
        {"of another text",
         {.is_settled = true, .has_pod = true, .is_wanted = true, .is_there = true},
         DV_MIRROR_REMOVE                                                                            },
        {"somebody deletes it",
         {.is_settled = true,
          .has_pod = true,
          .is_wanted = true,
          .is_there = true,
          .is_same = true,
          .is_deleting = true},
         DV_MIRROR_REMOVE                                                                            },
        {"its file is gone, it ends",
         {.is_settled = true, .has_pod = true, .is_there = true, .is_same = true},
         DV_MIRROR_WAIT                                                                              },
        {"ends, and has no mirror",   {.is_settled = true, .has_pod = true},         DV_MIRROR_WAIT  },
        {"a request is under way",
         {.is_settled = true,
          .has_pod = true,
          .is_wanted = true,
          .has_node = true,
          .is_writing = true},
         DV_MIRROR_WAIT                                                                              },
        {"a request has failed",
         {.is_settled = true, .is_there = true, .is_pausing = true},
         DV_MIRROR_WAIT                                                                              },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_mirror_next(&cases[i].facts) != cases[i].step)
            fail_msg("%s: %d", cases[i].what, (int)dv_mirror_next(&cases[i].facts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_an_api_would),
        cmocka_unit_test(a_uid_is_of_content_node_and_path),
        cmocka_unit_test(a_uid_that_is_given_stays),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(says_what_to_do_about_a_mirror),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
