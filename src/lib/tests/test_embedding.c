/* libdavit: objects in and out as JSON. */
#include "tests/support/dvtest.h"

#include <stdio.h>
#include <string.h>

#include "davit/alloc.h"
#include "davit/cel.h"

#define CLASS                                                                                      \
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"c\"" \
    "},\"spec\":{}}"
#define SLICE(name, pool, devices)                                                                 \
    "{\"apiVersion\":\"resource.k8s.io/"                                                           \
    "v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"" name                               \
    "\"},\"spec\":{\"driver\":\"d\",\"nodeName\":\"n\",\"pool\":{\"name\":\"" pool                 \
    "\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":[" devices "]}}"
#define CLAIM(name, status)                                                                        \
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{"             \
    "\"namespace\":\"ns\",\"name\":\"" name "\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":"  \
    "\"r\",\"exactly\":{\"deviceClassName\":\"c\"}}]}},\"status\":{" status "}}"
#define HOLDS_A                                                                                    \
    "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"d\",\"pool\":"      \
    "\"p\",\"device\":\"a\"}]}}"
#define LIST(items) "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" items "]}"

static const char node[] = "{\"metadata\":{\"name\":\"n\"}}";

/* What a claim gets on the node: the text, or the error's. */
static enum davit_outcome ask(struct davit_inventory *inventory, const char *claim, char *answer,
                              size_t size)
{
    struct davit_error error;
    char *allocations;
    enum davit_outcome outcome =
        davit_allocate(inventory, node, &claim, 1, NULL, &allocations, &error);

    (void)snprintf(answer, size, "%s", allocations ? allocations : error.message);
    davit_free(allocations);
    return outcome;
}

static void must_set(struct davit_inventory *inventory, const char *objects)
{
    struct davit_error error;

    if (!davit_inventory_set(inventory, objects, &error))
        fail_msg("%s", error.message);
}

static void allocates_what_was_set(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    char answer[1024];

    (void)state;
    must_set(inventory,
             LIST(CLASS "," SLICE(
                 "s", "p",
                 "{\"name\":\"a\"}") ",{\"apiVersion\":"
                                     "\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}"));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_ALLOCATED);
    assert_string_equal(answer, "[{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"d\","
                                "\"pool\":\"p\",\"device\":\"a\"}]},\"nodeSelector\":{"
                                "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata."
                                "name\",\"operator\":\"In\",\"values\":[\"n\"]}]}]}}]");
    davit_inventory_free(inventory);
}

static void holds_what_claims_have(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new("{}", NULL);
    struct davit_error error;
    char answer[1024];

    (void)state;
    must_set(inventory, LIST(CLASS "," SLICE("s", "p", "{\"name\":\"a\"}")));
    must_set(inventory, CLAIM("holder", HOLDS_A));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_UNALLOCATABLE);
    assert_string_equal(answer, "there is no solution on node n");
    must_set(inventory, CLAIM("holder", HOLDS_A)); /* not twice */
    must_set(inventory, CLAIM("holder", ""));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_ALLOCATED);
    must_set(inventory, CLAIM("holder", HOLDS_A));
    assert_true(davit_inventory_remove(inventory, "ResourceClaim", "ns", "holder", &error));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_ALLOCATED);
    assert_false(davit_inventory_remove(inventory, "ResourceClaim", "ns", "holder", &error));
    assert_int_equal(error.code, DAVIT_NOT_FOUND);
    assert_string_equal(error.message, "there is no ResourceClaim ns/holder");
    davit_inventory_free(inventory);
}

static void replaces_slices_and_classes(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    char answer[1024];

    (void)state;
    must_set(inventory, CLASS);
    must_set(inventory, SLICE("s", "p", "{\"name\":\"a\"}"));
    must_set(inventory, SLICE("s", "p", "{\"name\":\"b\"}"));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_ALLOCATED);
    assert_non_null(strstr(answer, "\"device\":\"b\""));
    assert_true(davit_inventory_remove(inventory, "ResourceSlice", NULL, "s", NULL));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_UNALLOCATABLE);
    assert_true(davit_inventory_remove(inventory, "DeviceClass", "", "c", NULL));
    assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)), DAVIT_CLAIM_FAULT);
    assert_non_null(strstr(answer, "could not retrieve device class c"));
    davit_inventory_forget_node(inventory, "n");
    davit_inventory_free(inventory);
}

static void reads_older_versions(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    char answer[1024];

    (void)state;
    must_set(inventory,
             LIST(CLASS ",{\"apiVersion\":\"resource.k8s.io/v1beta1\",\"kind\":"
                        "\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":"
                        "\"d\",\"nodeName\":\"n\",\"pool\":{\"name\":\"p\",\"generation\":1,"
                        "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"a\",\"basic\":{"
                        "\"capacity\":{\"m\":{\"value\":\"1\"}}}}]}}"));
    assert_int_equal(ask(inventory,
                         "{\"apiVersion\":\"resource.k8s.io/v1beta1\",\"kind\":\"ResourceClaim\","
                         "\"metadata\":{\"namespace\":\"ns\",\"name\":\"x\"},\"spec\":{\"devices\":"
                         "{\"requests\":[{\"name\":\"r\",\"deviceClassName\":\"c\"}]}}}",
                         answer, sizeof(answer)),
                     DAVIT_ALLOCATED);
    davit_inventory_free(inventory);
}

static void changes_nothing_when_something_cannot_be_read(void **state)
{
    static const struct {
        const char *objects;
        const char *message;
    } rows[] = {
        {LIST(CLASS "," SLICE("s", "p",   "{\"name\":5}")), "ResourceSlice"},
        {LIST(CLASS ",5"),         "expected an object"             },
        {"{\"items\":5}","expected an array"},
        {"{\"kind\":\"DeviceClass\"}",          "apiVersion"                           },
        {"[]",   "expected an object"},
        {"{",  "line 1"                          },
        {NULL,               "there is no text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
        struct davit_error error;
        char answer[1024];

        assert_false(davit_inventory_set(inventory, rows[i].objects, &error));
        assert_false(davit_inventory_set(inventory, rows[i].objects, NULL));
        if (!strstr(error.message, rows[i].message))
            fail_msg("row %zu: %s", i, error.message);
        assert_int_equal(ask(inventory, CLAIM("x", ""), answer, sizeof(answer)),
                         DAVIT_CLAIM_FAULT); /* the class is not there */
        davit_inventory_free(inventory);
    }
}

static void refuses_gates_that_it_does_not_know(void **state)
{
    struct davit_error error;
    struct davit_inventory *inventory =
        davit_inventory_new("{\"DRAListTypeAttributes\":true,\"DRAAdminAccess\":false}", &error);

    (void)state;
    assert_non_null(inventory);
    davit_inventory_free(inventory);
    assert_null(davit_inventory_new("{\"DRAOther\":true}", &error));
    assert_non_null(strstr(error.message, "DRAOther"));
    assert_null(davit_inventory_new("{\"DRAAdminAccess\":1}", &error));
    assert_null(davit_inventory_new("nothing", NULL));
}

static bool always(void *ctx)
{
    ++*(int *)ctx;
    return true;
}

static void gives_up_when_told(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    int n = 0;
    struct davit_allocate_options options = {1, always, &n};
    const char *claim = CLAIM("x", "");
    struct davit_error error;
    char *allocations;

    (void)state;
    must_set(inventory, LIST(CLASS "," SLICE("s", "p", "{\"name\":\"a\"}")));
    assert_int_equal(davit_allocate(inventory, node, &claim, 1, &options, &allocations, &error),
                     DAVIT_GAVE_UP);
    assert_null(allocations);
    assert_int_equal(error.code, DAVIT_RESOURCE_EXHAUSTED);
    davit_inventory_free(inventory);
}

static void explains_as_json(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    const char *claim = CLAIM("x", "");
    struct davit_error error;
    char *why;

    (void)state;
    must_set(inventory,
             LIST(CLASS "," SLICE("s", "p", "{\"name\":\"a\"}") "," CLAIM("h", HOLDS_A)));
    why = davit_explain(inventory, node, &claim, 1, &error);
    assert_string_equal(why,
                        "{\"outcome\":\"unallocatable\",\"summary\":\"claim ns/x, request r: 1 "
                        "wanted of 1: 1 taken\",\"requests\":[{\"claim\":\"ns/x\",\"request\":"
                        "\"r\",\"wanted\":1,\"fitting\":0,\"stuck\":true,\"devices\":[{\"driver\":"
                        "\"d\",\"pool\":\"p\",\"device\":\"a\",\"why\":\"taken\",\"text\":\"taken "
                        "by ns/h\"}]}]}");
    davit_free(why);
    claim = "{";
    assert_null(davit_explain(inventory, node, &claim, 1, &error));
    assert_non_null(strstr(error.message, "claim #0"));
    claim = CLASS;
    assert_null(davit_explain(inventory, node, &claim, 1, &error));
    assert_non_null(strstr(error.message, "expected a ResourceClaim"));
    assert_null(davit_explain(inventory, "5", &claim, 1, NULL));
    davit_inventory_free(inventory);
}

static void names_shares_at_random(void **state)
{
    struct davit_inventory *inventory = davit_inventory_new(NULL, NULL);
    char answers[2][1024];
    const char *id;

    (void)state;
    must_set(inventory, LIST(CLASS "," SLICE("s", "p",
                                             "{\"name\":\"a\",\"allowMultipleAllocations"
                                             "\":true}")));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ask(inventory, CLAIM("x", ""), answers[i], sizeof(answers[i])),
                         DAVIT_ALLOCATED);
    id = strstr(answers[0], "\"shareID\":\"");
    assert_non_null(id);
    id += strlen("\"shareID\":\"");
    assert_int_equal(strcspn(id, "\""), 36);
    assert_int_equal(id[14], '4');
    assert_non_null(strchr("89ab", id[19]));
    assert_string_not_equal(answers[0], answers[1]);
    davit_inventory_free(inventory);
}

/* ---- CEL ---- */

static void evaluates_expressions(void **state)
{
    static const char device[] = "{\"name\":\"a\",\"attributes\":{\"size\":{\"int\":2}}}";
    struct davit_error error;
    struct davit_cel *cel = davit_cel_compile("device.attributes['d'].size > 3", NULL, &error);
    uint64_t cost = 0;
    bool is_match = true;
    char *text;

    (void)state;
    assert_non_null(cel);
    assert_true(davit_cel_eval(cel, "d", device, &is_match, &cost, &error));
    assert_false(is_match);
    assert_in_range(cost, 1, davit_cel_max_cost(cel));
    assert_false(davit_cel_eval(cel, "other", device, &is_match, NULL, &error));
    assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
    assert_false(davit_cel_eval(cel, "d", "{\"name\":1}", &is_match, NULL, &error));
    assert_non_null(strstr(error.message, "the device"));
    text = davit_cel_print(cel);
    assert_string_equal(text, "device.attributes[\"d\"].size > 3");
    davit_free(text);
    text = davit_cel_explain(cel, "d", device, &error);
    assert_string_equal(text, "{\"verdict\":\"differs\",\"part\":\"device.attributes[\\\"d\\\"]."
                              "size > 3\",\"seen\":[{\"expression\":\"device.attributes[\\\"d\\\"]"
                              ".size\",\"value\":\"2\"}]}");
    davit_free(text);
    assert_null(davit_cel_explain(cel, "d", "x", NULL));
    davit_cel_free(cel);
}

static void tells_what_is_wrong_with_an_expression(void **state)
{
    struct davit_error error;
    char *text = davit_cel_problems("device.foo", NULL);

    (void)state;
    assert_null(davit_cel_compile("device.foo", NULL, &error));
    assert_non_null(strstr(error.message, "undefined field 'foo'"));
    assert_non_null(strstr(text, "ERROR: <input>:1:7: undefined field 'foo'"));
    davit_free(text);
    assert_null(davit_cel_problems("true", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates_what_was_set),
        cmocka_unit_test(holds_what_claims_have),
        cmocka_unit_test(replaces_slices_and_classes),
        cmocka_unit_test(reads_older_versions),
        cmocka_unit_test(changes_nothing_when_something_cannot_be_read),
        cmocka_unit_test(refuses_gates_that_it_does_not_know),
        cmocka_unit_test(gives_up_when_told),
        cmocka_unit_test(explains_as_json),
        cmocka_unit_test(names_shares_at_random),
        cmocka_unit_test(evaluates_expressions),
        cmocka_unit_test(tells_what_is_wrong_with_an_expression),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
