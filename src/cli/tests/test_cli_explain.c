#include "support/dvtest.h"

#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "cli/client/documents.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/world.h"
#include "resource/resource.h"
#include "json/json.h"

#define GROUP "apiVersion: resource.k8s.io/v1\n"
#define CLASS GROUP "kind: DeviceClass\nmetadata: {name: any}\n---\n"
#define NODE(name)                                                                                 \
    "apiVersion: v1\nkind: Node\nmetadata: {name: " name ", labels: {on: " name "}}\n---\n"
#define SLICE(node, devices)                                                                       \
    GROUP "kind: ResourceSlice\nmetadata: {name: " node                                            \
          "}\nspec: {driver: d.example.com, nodeName: " node ", pool: {name: " node                \
          ", generation: 1, resourceSliceCount: 1}, devices: [" devices "]}\n---\n"
#define SPEC(count)                                                                                \
    "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: any, count: " count "}}]}}"  \
    "\n"
#define CLAIM(name, count) GROUP "kind: ResourceClaim\nmetadata: {name: " name "}\n" SPEC(count)
#define HELD(name, pool, device)                                                                   \
    CLAIM(name, "1")                                                                               \
    "status: {allocation: {devices: {results: [{request: r, driver: d.example.com, pool: " pool    \
    ", device: " device "}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: "            \
    "metadata.name, operator: In, values: [" pool "]}]}]}}}\n---\n"
#define RULE(name, selector)                                                                       \
    "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: " name           \
    "}\nspec: {" selector "taint: {key: " name ", effect: NoSchedule}}\n---\n"
#define POD(claims)                                                                                \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}], "   \
    "resourceClaims: [" claims "]}\n"
#define TEMPLATE(name)                                                                             \
    GROUP "kind: ResourceClaimTemplate\nmetadata: {name: " name                                    \
          "}\nspec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: any}}]}}}\n" \
          "---\n"

/* What the tables below are made of. */
#define N1_HAS_A SLICE("n1", "{name: a}")
#define N1_HAS_AB SLICE("n1", "{name: a}, {name: b}")
#define N1_HAS_B SLICE("n1", "{name: b}")
#define N2_HAS_A SLICE("n2", "{name: a}")
#define OTHER_HAS_N1_A HELD("other", "n1", "a")
#define C_HAS_N1_A HELD("c", "n1", "a")
#define C_WANTS_1 CLAIM("c", "1") "---\n"
#define E_WANTS_1 CLAIM("e", "1") "---\n"
#define N1_AND_N2 NODE("n2") NODE("n1")
#define P_USES_C_AND_E POD("{name: x, resourceClaimName: c}, {name: w, resourceClaimName: e}")
#define P_USES_C_AND_OTHER                                                                         \
    POD("{name: x, resourceClaimName: c}, {name: w, resourceClaimName: other}")
#define P_USES_C POD("{name: x, resourceClaimName: c}")
#define P_USES_T POD("{name: x, resourceClaimTemplateName: t}")
#define P_USED_T                                                                                   \
    POD("{name: x, resourceClaimTemplateName: t}, {name: w, resourceClaimTemplateName: t}")        \
    "status: {resourceClaimStatuses: [{name: x, resourceClaimName: c}, {name: w}]}\n"

struct fixture {
    struct dv_arena *arena;
    struct dv_cli_world world;
    struct dv_cli_nodes nodes;
    struct dv_cli_explain_subject subject;
    struct dv_cli_explain question;
};

static void fill(struct fixture *f, const char *text, struct dv_arena *arena)
{
    struct dv_cli_documents documents = {0};
    struct dv_err err;

    *f = (struct fixture){.arena = arena};
    dv_cli_world_init(&f->world, DV_STR("default"), arena);
    assert_ok(dv_cli_documents_split(DV_STR("f"), dv_str_from_c(text), arena, &documents, &err),
              &err);
    for (size_t i = 0; i < documents.n; i++)
        assert_ok(dv_cli_world_add(&f->world, documents.v[i].json, &err), &err);
}

static void drain(struct fixture *f)
{
    dv_inventory_free(f->question.inventory);
    dv_cli_world_fini(&f->world);
}

static void ask(struct fixture *f, enum dv_kind_id kind, const char *name)
{
    struct dv_err err;

    assert_ok(dv_cli_explain_subject_find(&f->world, kind, DV_STR("default"), dv_str_from_c(name),
                                          &f->subject, &err),
              &err);
    if (f->subject.pending.n > 0)
        assert_ok(dv_cli_world_nodes(&f->world, f->subject.node, &f->nodes, &err), &err);
    f->question = (struct dv_cli_explain){
        .subject = &f->subject,
        .inventory = dv_cli_world_inventory(&f->world),
        .nodes = &f->nodes,
        .arena = f->arena,
    };
}

/* What is printed for the claim "c", or the pod "p" when there is one. */
static const char *explain(const char *text, bool *ok, struct dv_arena *arena)
{
    struct fixture f;
    struct dv_buf buf;
    const char *printed;
    bool is_pod;

    fill(&f, text, arena);
    is_pod = f.world.of[DV_KIND_POD].n > 0;
    ask(&f, is_pod ? DV_KIND_POD : DV_KIND_CLAIM, is_pod ? "p" : "c");
    dv_buf_init(&buf, 1u << 20);
    *ok = dv_cli_explain_print(&f.question, &buf);
    printed = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    drain(&f);
    return printed;
}

static void verdicts_are_told_by_node(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        const char *printed;
    } cases[] = {
        {CLASS N1_HAS_A C_WANTS_1,                          true,
         "claim default/c can be allocated on n1\n\n"
         "n1   yes   -\n\n"
         "On n1 it would get:\n\n"
         "c   r   d.example.com   n1   a\n"                     },
        {CLASS N1_HAS_A OTHER_HAS_N1_A C_WANTS_1,           false,
         "claim default/c cannot be allocated on n1\n\n"
         "n1   no   request r: 1 wanted of 1: 1 taken\n\n"
         "On n1:\n\n"
         "request r: 1 wanted of 1: 1 taken\n"
         "d.example.com/n1/a   taken   taken by default/other\n"},
        {CLASS C_HAS_N1_A,                                  true,
         "claim default/c is allocated\n\n"
         "c   r   d.example.com   n1   a\n"                     },
 /* the node that lacks least is first, and the one that is shown */
        {CLASS N1_AND_N2 N1_HAS_A OTHER_HAS_N1_A C_WANTS_1, false,
         "claim default/c cannot be allocated on any of 2 nodes\n\n"
         "n1   no   request r: 1 wanted of 1: 1 taken\n"
         "n2   no   request r: there are no devices on this node\n\n"
         "On n1:\n\n"
         "request r: 1 wanted of 1: 1 taken\n"
         "d.example.com/n1/a   taken   taken by default/other\n"},
 /* nobody can help a claim without its class */
        {N1_HAS_A C_WANTS_1,                                false,
         "claim default/c cannot be allocated: request r of claim default/c is for the class any, "
         "which is not there\n"                                 },
 /* an object that comes again is in place of the first */
        {CLASS N1_HAS_AB N1_HAS_B C_WANTS_1,                true,
         "claim default/c can be allocated on n1\n\n"
         "n1   yes   -\n\n"
         "On n1 it would get:\n\n"
         "c   r   d.example.com   n1   b\n"                     },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        bool ok;

        assert_string_equal(explain(cases[i].text, &ok, arena), cases[i].printed);
        assert_int_equal(ok, cases[i].ok);
    }
}

static void rules_taint_the_devices_that_they_select(void **state)
{
    static const struct {
        const char *selector;
        const char *tainted; /* devices, each followed by a blank */
    } cases[] = {
        {"deviceSelector: {device: a}, ",                                  "a "  },
        {"deviceSelector: {driver: d.example.com, pool: n1}, ",            "a b "},
        {"deviceSelector: {driver: other.example.com}, ",                  ""    },
        {"deviceSelector: {driver: d.example.com, pool: n1, device: b}, ", "b "  },
        {"deviceSelector: {}, ",                                           "a b "},
        {"",                                                               "a b "},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str text = dv_str_printf(arena, "%s%s%s" RULE("t", "%s"), CLASS,
                                    SLICE("n1", "{name: a}, {name: b}"), CLAIM("c", "3") "---\n",
                                    cases[i].selector);
        struct dv_explanation explanation;
        dv_str tainted = DV_STR("");
        struct fixture f;

        fill(&f, dv_str_to_c(text, arena), arena);
        ask(&f, DV_KIND_CLAIM, "c");
        dv_alloc_explain(f.question.inventory, &f.nodes.v[0], f.subject.pending.v,
                         f.subject.pending.n, &(struct dv_alloc_options){0}, arena, &explanation);
        for (size_t k = 0; k < explanation.requests[0].n_devices; k++)
            if (explanation.requests[0].devices[k].why == DV_WHY_TAINTED)
                tainted = dv_str_printf(arena, "%.*s%.*s ", DV_FMT(tainted),
                                        DV_FMT(explanation.requests[0].devices[k].device));
        assert_str(tainted, cases[i].tainted);
        drain(&f);
    }
}

static void taints_of_rules_follow_by_the_names_of_the_rules(void **state)
{
    static const char *const text = CLASS RULE("z", "") RULE("w", "")
        SLICE("n1", "{name: a, taints: [{key: own, effect: NoSchedule}]}") CLAIM("c", "1");
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct fixture f;
    bool ok;

    (void)state;
    assert_non_null(strstr(explain(text, &ok, arena), "the taint own:NoSchedule is not tolerated"));
    fill(&f, text, arena);
    ask(&f, DV_KIND_CLAIM, "c");
    assert_str(f.world.of[DV_KIND_TAINT_RULE].v[0]->name, "w");
    drain(&f);
}

static void pods_ask_for_all_their_claims_together(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        const char *part;
    } cases[] = {
  /* one device, two claims */
        {CLASS N1_HAS_A C_WANTS_1 E_WANTS_1 P_USES_C_AND_E,                              false,
         "claim default/e, request r: 1 wanted of 1: 1 taken-here\n"                                                                },
 /* one is allocated already, and the pod is bound by it */
        {CLASS N1_AND_N2 N2_HAS_A N1_HAS_AB OTHER_HAS_N1_A C_WANTS_1 P_USES_C_AND_OTHER, true,
         "n2   no    claim default/other is allocated, and not for this node\n"                                                     },
        {CLASS N1_HAS_A TEMPLATE("t") P_USES_T,                                          true,  "p-x   r   d.example.com   n1   a\n"},
        {CLASS N1_HAS_A P_USES_T,                                                        false, "its template t is not there\n"     },
        {CLASS N1_HAS_A P_USES_C,                                                        false,
         "pod default/p cannot be allocated: the pod's claim c is not there\n"                                                      },
 /* the claim was made, or found not to be needed */
        {CLASS N1_HAS_A C_WANTS_1 P_USED_T,                                              true,  "c   r   d.example.com   n1   a\n"  },
        {N1_HAS_A POD(""),                                                               true,  "pod default/p has no claims\n"     },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        bool ok;
        const char *printed = explain(cases[i].text, &ok, arena);

        if (!strstr(printed, cases[i].part))
            fail_msg("case %zu: no \"%s\" in:\n%s", i, cases[i].part, printed);
        assert_int_equal(ok, cases[i].ok);
    }
}

static void a_claim_that_goes_away_is_not_allocated(void **state)
{
    static const char *const text = CLASS SLICE("n1", "{name: a}") GROUP
        "kind: ResourceClaim\nmetadata: {name: c, deletionTimestamp: "
        "\"2026-01-01T00:00:00Z\"}\n" SPEC("1");
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    bool ok;

    (void)state;
    assert_non_null(strstr(explain(text, &ok, arena),
                           "cannot be allocated: claim default/c is being deleted\n"));
    assert_false(ok);
}

static void nodes_come_from_objects_or_from_slices(void **state)
{
    static const struct {
        const char *text;
        const char *only;
        const char *names; /* NULL: an error */
    } cases[] = {
        {NODE("b") NODE("a") SLICE("c", ""),            "",                                    "b a "},
        {NODE("b") NODE("a"),                             "a",                         "a "                              },
        {NODE("b"),                             "a",                                   NULL          },
        {SLICE("b",                             "") SLICE("a",                                   ""),                     "", "b a "},
        {SLICE("b",                           "") SLICE("a",                                   ""),                                                    "a", "a "},
        {SLICE("b",""),"x","x "},
        {CLASS,                             "",                                   NULL                                                                               },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str names = DV_STR("");
        struct fixture f;
        struct dv_err err;

        fill(&f, cases[i].text, arena);
        if (cases[i].names) {
            assert_ok(dv_cli_world_nodes(&f.world, dv_str_from_c(cases[i].only), &f.nodes, &err),
                      &err);
            for (size_t k = 0; k < f.nodes.n; k++)
                names = dv_str_printf(arena, "%.*s%.*s ", DV_FMT(names), DV_FMT(f.nodes.v[k].name));
            assert_str(names, cases[i].names);
        } else {
            assert_false(
                dv_cli_world_nodes(&f.world, dv_str_from_c(cases[i].only), &f.nodes, &err));
            assert_int_equal(err.code, DV_NOT_FOUND);
        }
        drain(&f);
    }
}

static void data_has_all_nodes_and_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc;
    const struct dv_json *node;
    struct fixture f;
    struct dv_buf buf;

    (void)state;
    fill(&f, CLASS SLICE("n1", "{name: a}") SLICE("n2", "") CLAIM("c", "1"), arena);
    ask(&f, DV_KIND_CLAIM, "c");
    assert_true(dv_cli_explain_data(&f.question, &doc));
    node = dv_json_first(dv_json_get(doc, DV_STR("nodes")));
    dv_buf_init(&buf, 1u << 16);
    dv_json_print(node, NULL, &buf);
    assert_non_null(strstr(dv_buf_c(&buf), "{\"node\":\"n1\",\"fits\":true,\"outcome\":\"done\""));
    assert_non_null(strstr(dv_buf_c(&buf), "\"device\":\"a\""));
    dv_buf_clear(&buf);
    dv_json_print(dv_json_next(node), NULL, &buf);
    assert_non_null(strstr(dv_buf_c(&buf), "{\"node\":\"n2\",\"fits\":false,\"outcome\":\"none\""));
    assert_non_null(strstr(dv_buf_c(&buf), "\"wanted\":1,\"fitting\":0,\"isStuck\":true"));
    dv_buf_fini(&buf);
    drain(&f);
}

static void objects_with_faults_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"7",                                                         "needs apiVersion and kind"},
        {"{kind: Node}",                                              "needs apiVersion and kind"},
        {"{apiVersion: v1, kind: Node}",                              "the Node has no name"     },
        {"{apiVersion: resource.k8s.io/v1alpha2, kind: DeviceClass}", "is not known"             },
        {"{apiVersion: v1, kind: Node, metadata: {name: [x]}}",       "Node "                    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cli_world world;
    struct dv_err err;

    (void)state;
    dv_cli_world_init(&world, DV_STR("default"), arena);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(cases[i].text), NULL, arena, &err);

        assert_non_null(doc);
        assert_false(dv_cli_world_add(&world, doc, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].message);
    }
    dv_cli_world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_told_by_node),
        cmocka_unit_test(rules_taint_the_devices_that_they_select),
        cmocka_unit_test(taints_of_rules_follow_by_the_names_of_the_rules),
        cmocka_unit_test(pods_ask_for_all_their_claims_together),
        cmocka_unit_test(a_claim_that_goes_away_is_not_allocated),
        cmocka_unit_test(nodes_come_from_objects_or_from_slices),
        cmocka_unit_test(data_has_all_nodes_and_devices),
        cmocka_unit_test(objects_with_faults_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
