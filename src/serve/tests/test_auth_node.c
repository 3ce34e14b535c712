/* test_auth_node.c - what a node's program may write, row by row of NodeRestriction. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "json/json.h"

#define OWNER(more)                                                                                \
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"u1\"" more "}"
#define MIRROR(owners, spec)                                                                       \
    "{\"metadata\":{\"name\":\"m\",\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"},"       \
    "\"ownerReferences\":[" owners "]},\"spec\":{" spec "}}"
#define GOOD_OWNER OWNER(",\"controller\":true")
#define POD(node, more)                                                                            \
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"" node "\"}" more "}"
#define NODE(name, meta, spec) "{\"metadata\":{\"name\":\"" name "\"" meta "},\"spec\":{" spec "}}"
#define LABEL(key) ",\"labels\":{\"" key "\":\"x\"}"
#define TAINT "\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]"
#define SLICE(node) "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"nodeName\":\"" node "\"}}"

static const struct {
    enum dv_kind_id kind;
    const char *subresource;
    const char *verb;
    const char *old;   /* NULL: nothing is there */
    const char *value; /* NULL: it goes */
    const char *want;  /* a part of the reason; "": it is fine */
} cases[] = {
  /* new pods */
    {DV_KIND_POD,                                                     "",                      "create",                                                                NULL,POD("n1",                                         ""),  "can only create mirror pods"},
    {DV_KIND_POD,                                                               "",                                                                            "create",                                                                                   NULL,MIRROR(GOOD_OWNER,"\"nodeName\":\"n1\""),""},
    {DV_KIND_POD,                                                             "",                                                                                    "create",                                                                                                                                                 NULL,MIRROR(GOOD_OWNER,"\"nodeName\":\"n2\""),
     "node \"n1\" can only create pods with spec.nodeName set to itself"},
    {DV_KIND_POD,                                         "",                      "create",                                                                                             NULL,MIRROR(GOOD_OWNER,""),"spec.nodeName set to itself"},
    {DV_KIND_POD,                                              "",                                                                  "create",                                                                                                            NULL,                          MIRROR("",                                                                                                                                                                                                              "\"nodeName\":\"n1\""),
     "with an owner reference set to itself"},
    {DV_KIND_POD,                                                           "",                                                                         "create",               NULL,MIRROR(GOOD_OWNER "," GOOD_OWNER,"\"nodeName\":\"n1\""),
     "with a single owner reference set to itself"},
    {DV_KIND_POD,                                                       "",  "create",                           NULL,MIRROR(OWNER(""),"\"nodeName\":\"n1\""),
     "with a controller owner reference"},
    {DV_KIND_POD,       "",                     "create",                                                              NULL,
     MIRROR(OWNER(",\"controller\":true,\"blockOwnerDeletion\":true"),                        "\"nodeName\":\"n1\""),
     "must not set blockOwnerDeletion"},
    {DV_KIND_POD,                                                     "",                                                                    "create",                                                                                                               NULL,
     MIRROR("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"u2\","
            "\"controller\":true}","\"nodeName\":\"n1\""),
     "node n1 UID mismatch: expected u2 got u1"},
    {DV_KIND_POD,                                                               "",                                                                            "create",                                                                                             NULL,
     MIRROR(GOOD_OWNER,"\"nodeName\":\"n1\",\"imagePullSecrets\":[{\"name\":\"s\"}]"),
     "node \"n1\" can not create pods that reference secrets"},
 /* pods that are there */
    {DV_KIND_POD,                      "",                                             "delete",                                                                                                          POD("n1",""),NULL,""},
    {DV_KIND_POD, "",                                 "delete",                                                                                                        POD("n2",""),NULL,
     "node \"n1\" can only delete pods with spec.nodeName set to itself"},
    {DV_KIND_POD,                                                            "",                                                                               "update",                                                                                                                                                    POD("n1",                                                                                                           ""),                                                                                                                                                                                                                                                                                                                                                                                 POD("n1",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               ""), "unexpected operation \"UPDATE\""},
    {DV_KIND_POD,                                                       "status",                                                                           "patch",                                       POD("n1",""),POD("n1",",\"status\":{\"phase\":\"Failed\"}"),
     ""},
    {DV_KIND_POD,                                                       "status","patch",POD("n2",""),POD("n2",""), "can only update pod status"},
    {DV_KIND_POD,                                                     "status",              "patch",    POD("n1",""),
     "{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"nodeName\":\"n1\"}}","cannot update labels through pod status"},
    {DV_KIND_POD,                                                              "status",                                                                                     "patch",                                                                                                                                                  POD("n1",""),
     POD("n1",",\"status\":{\"resourceClaimStatuses\":[{\"name\":\"a\"}]}"),
     "cannot update resource claim statues"},
    {DV_KIND_POD,                                                       "status",                                                                           "patch",
     POD("n1",",\"status\":{\"resourceClaimStatuses\":[{\"name\":\"a\"}]}"),                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         POD("n1",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               ""),
     "cannot update resource claim statues"},
    {DV_KIND_POD,                                                       "status",                                                                           "patch",                                                                         POD("n1",""),
     POD("n1",",\"status\":{\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"c\"}}"),
     "cannot update extended resource claim status"},
    {DV_KIND_POD,                                                        "eviction","create",POD("n1",""),NULL,""},
    {DV_KIND_POD,                                                     "eviction",              "create",    POD("n2",""),                          NULL,"node n1 can only evict pods"},
    {DV_KIND_POD,                          "eviction",                                                 "create",                                                                                                              NULL,NULL,"pod \"p\" not found"},
    {DV_KIND_POD,                                                        "binding", "create",                                                                                                                    POD("",""),POD("n1",""), "unexpected pod subresource"},
 /* the node */
    {DV_KIND_NODE,                                                       "",                                                                           "create",                                                                                                                                                                                                                                         NULL,                                                                            NODE("n1",                                                                                                                                                                                                                    LABEL("example.com/a"),                                                                                                                                                                                                                                                               TAINT), ""},
    {DV_KIND_NODE,                                                       "",                                                         "create",                                                                                                                          NULL,NODE("n2","",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            ""), "not allowed to modify node \"n2\""},
    {DV_KIND_NODE,                            "","create",NULL,NODE("n1",                                                                                                                                                 LABEL("node-restriction.kubernetes.io/a"),                                                                                                                                                                                                                                                                                                                                                                                                                                                         ""),
     "is not allowed to set the following labels: node-restriction.kubernetes.io/a"},
    {DV_KIND_NODE,"",              "create",NULL,NODE("n1",LABEL("kubernetes.io/x"),                                                                                                      ""), "kubernetes.io/x"},
    {DV_KIND_NODE,                                                               "",                                                                           "create",                                                                                          NULL,NODE("n1",LABEL("a.k8s.io/x"),""), "a.k8s.io/x"},
    {DV_KIND_NODE,                                                         "",                                                                              "create",                                                                                                                                                     NULL,NODE("n1",LABEL("notk8s.io/x"),""), ""},
    {DV_KIND_NODE,                                                      "",                                                                           "create",                                                                                                                                               NULL,NODE("n1",        LABEL("kubernetes.io/hostname"),""), ""},
    {DV_KIND_NODE,                                                       "",                                                                                "create",                                                                                                                                                                                              NULL,                  NODE("n1",LABEL("a.node.kubernetes.io/x"),""), ""},
    {DV_KIND_NODE,                                                    "",                                                                           "create",                                                                                                                             NULL,NODE("n1",                                                                                                                          "",                                                                                                                                            "\"configSource\":{}"), "configSource"},
    {DV_KIND_NODE,                                              "",                                                                     "patch",                                                                                                                                 NODE("n1","",""),NODE("n1", LABEL("plain"), ""), ""},
    {DV_KIND_NODE,                                            "",                                                                "patch",                                                                                                                           NODE("n2","",                                                                                                                                                                                                                                                                                                                                                     ""),                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          NODE("n2", "", ""), "modify node \"n2\""},
    {DV_KIND_NODE,                                                           "",                                                                         "patch",NODE("n1","",""),                                                                                                                                                                                                                                                                                                                                                                                                                  NODE("n1", LABEL("k8s.io/x"), ""),
     "is not allowed to modify labels: k8s.io/x"},
    {DV_KIND_NODE,        "status","patch",NODE("n1",LABEL("k8s.io/x"),""),                                                                                                                                                                                                                                                                                                                                                              NODE("n1", "", ""),
     "is not allowed to modify labels: k8s.io/x"},
    {DV_KIND_NODE,                                                               "",                                                                           "patch",                                                                                          NODE("n1",LABEL("k8s.io/x"),""),
     NODE("n1", LABEL("k8s.io/x"), "\"podCIDR\":\"10.0.0.0/24\""), ""},
    {DV_KIND_NODE,                                                            "",                                                                                 "patch",                                                                                                                                                        NODE("n1","",TAINT),NODE("n1", "", ""), "modify taints"},
    {DV_KIND_NODE,                                                      "status",                                                                           "patch",                                                                                                                            NODE("n1","",""),NODE("n1", "", TAINT), "modify taints"},
    {DV_KIND_NODE,                                                        "",  "patch",NODE("n1","",                                                                                                                   TAINT),                                                                                                                                                                                                                                                                                                                                                                                                          NODE("n1", "", TAINT), ""},
    {DV_KIND_NODE,                                                             "",                                                                                    "patch",                                                                                                                                                NODE("n1","",""),
     NODE("n1", ",\"ownerReferences\":[" OWNER("") "]", ""), "modify ownerReferences"},
    {DV_KIND_NODE,                                                            "",                                                                          "patch",                                                                                                                                               NODE("n1","",""),NODE("n1", "", "\"configSource\":{}"),
     "to a new non-nil configSource"},
 /* slices, and what is nobody's */
    {DV_KIND_SLICE,   "","create",                                  NULL,SLICE("n1"),                              ""},
    {DV_KIND_SLICE,                                                            "",                                              "create",                                                                                                                     NULL,SLICE("n2"),"can only create ResourceSlice"},
    {DV_KIND_SLICE,                                              "",                                                                  "create",                                                                                                                                NULL,                                                                                                                                                                                 SLICE(""),                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "can only create ResourceSlice"},
    {DV_KIND_SLICE,                                                    "",           "deletecollection", SLICE("n2"),NULL,"can only delete ResourceSlice"                                                                                                                                                                                                                                                                                                                 },
    {DV_KIND_SLICE,                                              "",                                       "delete",                                                                                                            SLICE("n1"),NULL,""},
    {DV_KIND_SECRET,                                                      "",                                                                           "create",NULL,"{}","a node does not write secrets"                                                                 },
};

static void *decode(const struct dv_kind *kind, const char *text, struct dv_arena *arena)
{
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

static void a_node_writes_what_is_its_own(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = dv_auth_node(DV_STR("n1"), arena);
    struct dv_api_object_meta own = {.name = DV_STR("n1"), .uid = DV_STR("u1")};
    const struct dv_object node = {.meta = &own};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_kind *kind = dv_kind(cases[i].kind);
        struct dv_object old = {.kind = kind};
        struct dv_auth_change change = {.node = &node};
        struct dv_auth_request request = {.verb = dv_str_from_c(cases[i].verb),
                                          .resource = kind->plural,
                                          .subresource = dv_str_from_c(cases[i].subresource),
                                          .name = DV_STR("p")};
        struct dv_auth_denial denial;
        bool is_allowed;

        if (cases[i].old) {
            old.value = decode(kind, cases[i].old, arena);
            old.meta = old.value;
            change.old = &old;
        }
        if (cases[i].value)
            change.value = decode(kind, cases[i].value, arena);
        is_allowed = dv_auth_check_write(&user, &request, &change, arena, &denial);
        if (is_allowed != (cases[i].want[0] == '\0') ||
            (!is_allowed &&
             dv_str_find(denial.reason, dv_str_from_c(cases[i].want)) == denial.reason.n))
            fail_msg("case %zu: %.*s", i, DV_FMT(denial.reason));
    }
}

static void a_mirror_pod_before_its_node_is_not_found(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_user_info user = dv_auth_node(DV_STR("n1"), arena);
    const struct dv_auth_request request = {.verb = DV_STR("create"), .resource = DV_STR("pods")};
    const struct dv_auth_change change = {
        .value = decode(dv_kind(DV_KIND_POD), MIRROR(GOOD_OWNER, "\"nodeName\":\"n1\""), arena)};
    struct dv_auth_denial denial;

    (void)state;
    assert_false(dv_auth_check_write(&user, &request, &change, arena, &denial));
    assert_str(denial.missing, "node");
    assert_str(denial.reason, "node \"n1\" not found");
}

static void rules_that_widen_a_token_only_read(void **state)
{
    static const struct {
        const char *text;
        const char *group;
        const char *resource; /* NULL: it is refused */
        const char *subresource;
    } rules[] = {
        {"pods: get,list,watch",               "",                "pods",           ""      },
        {" pods : get , list ",                "",                "pods",           ""      },
        {"nodes/status: get",                  "",                "nodes",          "status"},
        {"resourceclaims: watch",              "resource.k8s.io", "resourceclaims", ""      },
        {"resourceclaims.resource.k8s.io:get", "resource.k8s.io", "resourceclaims", ""      },
        {"events.events.k8s.io: list",         "events.k8s.io",   "events",         ""      },
        {"pods",                               "",                NULL,             ""      },
        {"pods:",                              "",                NULL,             ""      },
        {":get",                               "",                NULL,             ""      },
        {"pods: get,update",                   "",                NULL,             ""      },
        {"pods: *",                            "",                NULL,             ""      },
        {"*: get",                             "",                NULL,             ""      },
        {"pods/log: get",                      "",                NULL,             ""      },
        {"secrets: get",                       "",                NULL,             ""      },
        {"secrets.: get",                      "",                NULL,             ""      },
        {"pods.apps: get",                     "",                NULL,             ""      },
        {"gpus: get",                          "",                NULL,             ""      },
        {"",                                   "",                NULL,             ""      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rules); i++) {
        struct dv_auth_also also;
        struct dv_err err;
        bool is_read = dv_auth_also_parse(dv_str_from_c(rules[i].text), &also, &err);

        if (is_read != (rules[i].resource != NULL))
            fail_msg("%s: %s", rules[i].text, is_read ? "was read" : err.msg);
        if (!is_read)
            continue;
        assert_str(also.group, rules[i].group);
        assert_str(also.resource, rules[i].resource);
        assert_str(also.subresource, rules[i].subresource);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_writes_what_is_its_own),
        cmocka_unit_test(a_mirror_pod_before_its_node_is_not_found),
        cmocka_unit_test(rules_that_widen_a_token_only_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
