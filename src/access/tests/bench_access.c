/* bench_access.c - what a decision costs, and a change.
 *
 * Besides the roles that always exist there are as many namespaces as the row says, each with two
 * roles of its own, bound to a service account and to a group of people. */
#include "access/access.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

#define RUN_NS (20u * 1000u * 1000u)
#define RUNS 5

static void add(struct dv_access *access, enum dv_kind_id id, dv_str text, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions->message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(text, NULL, arena, &err);
    struct dv_object *object;

    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err)) {
        (void)fprintf(stderr, "bench_access: %s\n", err.msg);
        exit(1);
    }
    object = dv_object_new(kind, value);
    dv_access_changed(access, NULL, object);
    dv_object_unref(object);
}

static void add_namespace(struct dv_access *access, unsigned i, struct dv_arena *arena)
{
    add(access, DV_KIND_ROLE,
        dv_str_printf(
            arena,
            "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns-%u\"},\"rules\":[{\"verbs\":"
            "[\"get\",\"list\",\"watch\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\","
            "\"pods/log\",\"configmaps\"]}]}",
            i),
        arena);
    add(access, DV_KIND_ROLE_BINDING,
        dv_str_printf(
            arena,
            "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns-%u\"},\"roleRef\":{\"kind\":"
            "\"Role\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":"
            "\"s\"}]}",
            i),
        arena);
    add(access, DV_KIND_ROLE_BINDING,
        dv_str_printf(
            arena,
            "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns-%u\"},\"roleRef\":{\"kind\":"
            "\"ClusterRole\",\"name\":\"admin\"},\"subjects\":[{\"kind\":\"Group\",\"name\":"
            "\"people\"}]}",
            i),
        arena);
}

static double measure(const struct dv_access *access, const struct dv_api_user_info *user,
                      const struct dv_access_request *request, bool *is_allowed)
{
    double best = 1e9;

    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        uint64_t n = 0;
        uint64_t now;

        do {
            for (int i = 0; i < 100; i++)
                *is_allowed = dv_access_allows(access, user, request);
            n += 100;
            now = dv_clock_now_ns(dv_clock_real());
        } while (now - start < RUN_NS);
        if ((double)(now - start) / (double)n < best)
            best = (double)(now - start) / (double)n;
    }
    return best;
}

int main(void)
{
    static const unsigned sizes[] = {1, 100, 10000};
    dv_str account_groups[] = {DV_STR("system:serviceaccounts"),
                               DV_STR("system:serviceaccounts:ns-0"),
                               DV_STR("system:authenticated")};
    dv_str people[] = {DV_STR("one"), DV_STR("two"), DV_STR("people"),
                       DV_STR("system:authenticated")};
    const struct {
        const char *what;
        struct dv_api_user_info user;
        struct dv_access_request request;
    } cases[] = {
        {"account, allowed in its namespace",
         {.username = DV_STR("system:serviceaccount:ns-0:s"),
          .groups = account_groups,
          .n_groups = 3},
         {.verb = DV_STR("get"),
          .resource = DV_STR("pods"),
          .subresource = DV_STR("log"),
          .namespace = DV_STR("ns-0"),
          .name = DV_STR("x")}                                                              },
        {"account, refused",
         {.username = DV_STR("system:serviceaccount:ns-0:s"),
          .groups = account_groups,
          .n_groups = 3},
         {.verb = DV_STR("get"), .resource = DV_STR("secrets"), .namespace = DV_STR("ns-0")}},
        {"group, allowed by admin",
         {.username = DV_STR("someone"), .groups = people, .n_groups = 4},
         {.verb = DV_STR("patch"),
          .group = DV_STR("resource.k8s.io"),
          .resource = DV_STR("resourceclaims"),
          .namespace = DV_STR("ns-0"),
          .name = DV_STR("c")}                                                              },
        {"group, refused after admin",
         {.username = DV_STR("someone"), .groups = people, .n_groups = 4},
         {.verb = DV_STR("patch"), .resource = DV_STR("nodes"), .namespace = DV_STR("ns-0")}},
        {"path of discovery",
         {.username = DV_STR("someone"), .groups = people, .n_groups = 4},
         {.verb = DV_STR("get"), .path = DV_STR("/apis/resource.k8s.io/v1")}                },
    };

    (void)printf("%-36s %10s %10s %8s\n", "decision", "namespaces", "allowed", "ns");
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_access *access = dv_access_new();
        size_t n;
        struct dv_access_default *all = dv_access_defaults(arena, &n);

        for (size_t k = 0; k < n; k++) {
            struct dv_object *object = dv_object_new(all[k].kind, all[k].value);

            dv_access_changed(access, NULL, object);
            dv_object_unref(object);
        }
        for (unsigned k = 0; k < sizes[i]; k++)
            add_namespace(access, k, arena);
        for (size_t k = 0; k < DV_COUNT(cases); k++) {
            bool is_allowed = false;
            double ns = measure(access, &cases[k].user, &cases[k].request, &is_allowed);

            (void)printf("%-36s %10u %10s %8.0f\n", cases[k].what, sizes[i],
                         is_allowed ? "yes" : "no", ns);
        }
        dv_access_free(access);
    }
    return 0;
}
