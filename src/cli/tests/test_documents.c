#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "cli/client/documents.h"
#include "resource/resource.h"
#include "json/json.h"

/* "2@7 resourceclaim/default/a" for each document, or "! message" in its place, and at the end
 * what cannot be read. */
static const char *split(const char *file, const char *text, dv_str wanted, struct dv_arena *arena)
{
    struct dv_cli_documents documents = {0};
    struct dv_err unread;
    bool ok = dv_cli_documents_split(dv_str_from_c(file), dv_str_from_c(text), arena, &documents,
                                     &unread);
    dv_str all = DV_STR("");

    for (size_t i = 0; i < documents.n; i++) {
        const struct dv_cli_document *document = &documents.v[i];
        struct dv_cli_subject subject;
        struct dv_err err;

        if (dv_cli_document_subject(document, wanted, wanted.n ? wanted : DV_STR("default"),
                                    &subject, &err))
            all = dv_str_printf(arena, "%.*s%zu@%u %.*s/%.*s/%.*s\n", DV_FMT(all), document->number,
                                dv_json_line(document->json), DV_FMT(subject.kind->singular),
                                DV_FMT(subject.namespace), DV_FMT(subject.name));
        else
            all = dv_str_printf(arena, "%.*s! %s\n", DV_FMT(all), err.msg);
    }
    if (!ok)
        all = dv_str_printf(arena, "%.*s!! %s\n", DV_FMT(all), unread.msg);
    return dv_str_to_c(all, arena);
}

#define CLAIM(name)                                                                                \
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: " name "}\n"
#define NODE(name) "apiVersion: v1\nkind: Node\nmetadata: {name: " name "}\n"

static void texts_are_split_into_objects(void **state)
{
    static const struct {
        const char *file;
        const char *text;
        const char *expected;
    } cases[] = {
        {"f.yaml", "",                                                                               ""                                 },
        {"f.yaml", "# nothing\n---\n---\n",                                                          ""                                 },
        {"f.yaml", CLAIM("a"),                                                                       "1@1 resourceclaim/default/a\n"    },
        {"f.yaml", "---\n" CLAIM("a") "---\n" NODE("n1") "---\n",
         "1@2 resourceclaim/default/a\n2@6 node//n1\n"                                                                                  },
        {"f.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: ml\n",
         "1@1 pod/ml/p\n"                                                                                                               },
 /* a list of anything, and one of a kind */
        {"f.yaml",
         "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: "
         "{name: n1}\n"
         "- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n",                                     "1@4 node//n1\n1@7 pod/default/p\n"},
        {"f.yaml",
         "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimList\nitems:\n- metadata: {name: a}\n", "1@4 resourceclaim/default/a\n"    },
        {"f.yaml", "apiVersion: v1\nkind: List\nitems: []\n",                                        ""                                 },
        {"f.json",
         "{\"apiVersion\":\"v1\",\n\t\"kind\":\"Node\",\n\t\"metadata\":{\"name\":\"n1\"}}",         "1@1 node//n1\n"                   },
        {"-",      "{apiVersion: v1, kind: Node, metadata: {name: n1}}",                             "1@1 node//n1\n"                   },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(split(cases[i].file, cases[i].text, DV_STR_NONE, arena),
                            cases[i].expected);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"[]\n---\n" NODE("n1"),                                                             "! f.yaml, document 1: line 1, column 1: expected an object, got "
                                 "an array\n2@3 node//n1\n"                                                                              },
        {"a\n",                                                                              "! f.yaml, document 1: line 1, column 1: expected an object, got a string\n"},
        {"kind: Pod\n",                                                                      "! f.yaml, document 1: line 1, column 1: \"apiVersion\" is missing\n"       },
        {"apiVersion: v1\n",                                                                 "! f.yaml, document 1: line 1, column 1: \"kind\" is missing\n"             },
        {"apiVersion: v1\nkind: Pod\n",
         "! f.yaml, document 1: line 1, column 1: \"metadata\" is missing\n"                                                                                             },
        {"apiVersion: v1\nkind: Pod\nmetadata: {}\n",
         "! f.yaml, document 1: line 3, column 11: metadata: \"name\" is missing\n"                                                                                      },
        {"apiVersion: v1\nkind: Pod\nmetadata: {name: ''}\n",
         "! f.yaml, document 1: line 3, column 18: metadata.name: it is empty\n"                                                                                         },
        {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n",
         "! f.yaml, document 1: line 3, column 18: metadata.name: expected a string, got a "
         "number\n"                                                                                                                                                      },
        {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n",
         "! f.yaml, document 1: line 3, column 11: metadata: generateName cannot be applied: give "
         "it a name\n"                                                                                                                                                   },
        {"apiVersion: v1\nkind: ResourceClaim\nmetadata: {name: a}\n",
         "! f.yaml, document 1: line 1, column 1: there is no kind ResourceClaim in v1; did you "
         "mean ResourceClaim in resource.k8s.io/v1?\n"                                                                                                                   },
        {"apiVersion: v1\nkind: pod\nmetadata: {name: a}\n",
         "! f.yaml, document 1: line 1, column 1: there is no kind pod in v1; did you mean Pod in "
         "v1?\n"                                                                                                                                                         },
        {"apiVersion: resource.k8s.io/v1\nkind: ResourceClam\nmetadata: {name: a}\n",
         "! f.yaml, document 1: line 1, column 1: there is no kind ResourceClam in "
         "resource.k8s.io/v1; did you mean ResourceClaim?\n"                                                                                                             },
        {"apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: a}\n",
         "! f.yaml, document 1: line 1, column 1: ResourceClass is of classic DRA, which is not "
         "served; in its place is a DeviceClass\n"                                                                                                                       },
        {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
         "! f.yaml, document 1: line 1, column 1: there is no kind CronJob in batch/v1\n"                                                                                },
 /* what was read before a mistake in the text still counts */
        {NODE("n1") "---\na: [\n",                                                           "1@1 node//n1\n!! f.yaml, document 2: line "                                },
        {NODE("n1") "---\na: 1\na: 2\n",                                                     "1@1 node//n1\n!! f.yaml, document 2: line "                                },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str found = dv_str_from_c(split("f.yaml", cases[i].text, DV_STR_NONE, arena));

        if (!dv_str_starts_with(found, dv_str_from_c(cases[i].expected)))
            fail_msg("%.*s instead of %s", DV_FMT(found), cases[i].expected);
    }
}

static void broken_json_is_told_as_json(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str found = dv_str_from_c(split("f.json", "{\"a\": tru}", DV_STR_NONE, arena));

    (void)state;
    assert_true(dv_str_starts_with(found, DV_STR("!! f.json, document 1: line 1, column 7")));
}

static void a_namespace_of_its_own_must_be_the_one_asked_for(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *text = CLAIM("a") "---\n" NODE("n1") "---\napiVersion: v1\nkind: Pod\nmetadata: "
                                                     "{name: p, namespace: other}\n";

    (void)state;
    assert_string_equal(
        split("f.yaml", text, DV_STR("ml"), arena),
        "1@1 resourceclaim/ml/a\n2@5 node//n1\n! f.yaml, document 3: line 9, column "
        "1: it is for the namespace other, and -n says ml\n");
}

/* ---- files ---- */

static void touch(const char *folder, const char *name)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void a_folder_is_its_files_by_name(void **state)
{
    static const char *const names[] = {"b.yaml", "a.json", "c.yml", "README.md", ".hidden.yaml"};
    static const char *const expected[] = {"a.json", "b.yaml", "c.yml"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char folder[] = "/tmp/dv-documents-XXXXXX";
    struct dv_cli_paths paths = {0};
    struct dv_err err;
    char path[256];

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_false(dv_cli_paths_add(dv_str_from_c(folder), arena, &paths, &err));
    assert_int_equal(err.code, DV_NOT_FOUND);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        touch(folder, names[i]);
    assert_ok(dv_cli_paths_add(dv_str_from_c(folder), arena, &paths, &err), &err);
    assert_int_equal(paths.n, DV_COUNT(expected));
    for (size_t i = 0; i < DV_COUNT(expected); i++)
        assert_true(dv_str_ends_with(paths.v[i], dv_str_from_c(expected[i])));
    (void)snprintf(path, sizeof(path), "%s/README.md", folder);
    assert_ok(dv_cli_paths_add(dv_str_from_c(path), arena, &paths, &err), &err); /* as named */
    assert_ok(dv_cli_paths_add(DV_STR("-"), arena, &paths, &err), &err);
    assert_int_equal(paths.n, DV_COUNT(expected) + 2);
    assert_false(dv_cli_paths_add(DV_STR("/no/such"), arena, &paths, &err));
    assert_string_equal(err.msg, "/no/such: No such file or directory");
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_split_into_objects),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(broken_json_is_told_as_json),
        cmocka_unit_test(a_namespace_of_its_own_must_be_the_one_asked_for),
        cmocka_unit_test(a_folder_is_its_files_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
