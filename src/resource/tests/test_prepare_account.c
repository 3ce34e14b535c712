/* What pods get from their service accounts. */
#include "resource/prepare.h"
#include "support/docs.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "support/dvtest.h"

#define MOUNT                                                                                      \
    "{\"name\":\"kube-api-access-x\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets/"          \
    "kubernetes.io/serviceaccount\"}"
#define VOLUME                                                                                     \
    "{\"name\":\"kube-api-access-x\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{"       \
    "\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt"  \
    "\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{"     \
    "\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":"                    \
    "\"metadata.namespace\"}}]}}],\"defaultMode\":420}}"
#define NAMES "\"serviceAccountName\":\"default\",\"serviceAccount\":\"default\""

static void *read_as(const struct dv_message *message, const char *yaml)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse_yaml(yaml), DV_UNKNOWN_DROP, arena, value, NULL, &err),
              &err);
    return value;
}

static void pods_get_what_their_account_says(void **state)
{
    static const struct {
        const char *spec;
        const char *account; /* NULL: it is not there yet */
        const char *want;    /* the spec as JSON */
    } cases[] = {
        {"{containers: [{name: c}]}",                                                        NULL,
         "{\"volumes\":[" VOLUME "],\"containers\":[{\"name\":\"c\",\"resources\":{},"
         "\"volumeMounts\":[" MOUNT "]}]," NAMES "}"                                                                                       },
        {"{initContainers: [{name: i}], containers: [{name: c, volumeMounts: [{name: v, mountPath: "
         "/v}]}], volumes: [{name: v, emptyDir: {}}]}",                             "{}",
         "{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}," VOLUME "],\"initContainers\":[{"
         "\"name\":\"i\",\"resources\":{},\"volumeMounts\":[" MOUNT "]}],\"containers\":[{"
         "\"name\":\"c\",\"resources\":{},\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}"
         "," MOUNT "]}]," NAMES "}"                                                                                                        },
 /* pod and account may do without, and the pod counts */
        {"{containers: [{name: c}], automountServiceAccountToken: false}",                   "{}",
         "{\"containers\":[{\"name\":\"c\",\"resources\":{}}]," NAMES
         ",\"automountServiceAccountToken\":false}"                                                                                        },
        {"{containers: [{name: c}]}",                                                        "{automountServiceAccountToken: false}",
         "{\"containers\":[{\"name\":\"c\",\"resources\":{}}]," NAMES "}"                                                                  },
        {"{containers: [{name: c}], automountServiceAccountToken: true}",
         "{automountServiceAccountToken: false}",                                                                                     "{\"volumes\":[" VOLUME "],\"containers\":[{\"name\":\"c\",\"resources\":{},"
         "\"volumeMounts\":[" MOUNT "]}]," NAMES ",\"automountServiceAccountToken\":true}"},
 /* who has something of his own there keeps it */
        {"{containers: [{name: c, volumeMounts: [{name: v, mountPath: "
         "/var/run/secrets/kubernetes.io/serviceaccount}]}]}",                      "{}",
         "{\"containers\":[{\"name\":\"c\",\"resources\":{},\"volumeMounts\":[{\"name\":\"v\","
         "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}]}]," NAMES "}"                                                  },
        {"{containers: [{name: c}], volumes: [{name: kube-api-access-mine, emptyDir: {}}]}", "{}",
         "{\"volumes\":[{\"name\":\"kube-api-access-mine\",\"emptyDir\":{}}],\"containers\":[{"
         "\"name\":\"c\",\"resources\":{},\"volumeMounts\":[{\"name\":\"kube-api-access-mine\","
         "\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/"
         "serviceaccount\"}]}]," NAMES "}"                                                                                                 },
 /* pull secrets, of pods that have none */
        {"{containers: [], serviceAccountName: q, serviceAccount: q}",
         "{imagePullSecrets: [{name: r}]}",                                                                                           "{\"containers\":[],\"serviceAccountName\":\"q\",\"serviceAccount\":\"q\","
         "\"imagePullSecrets\":[{\"name\":\"r\"}]}"                                             },
        {"{containers: [], serviceAccountName: q, serviceAccount: q, imagePullSecrets: [{name: "
         "own}]}",                                                                  "{imagePullSecrets: [{name: r}]}",
         "{\"containers\":[],\"serviceAccountName\":\"q\",\"serviceAccount\":\"q\","
         "\"imagePullSecrets\":[{\"name\":\"own\"}]}"                                                                                      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_pod pod = {
            .spec = *(struct dv_api_pod_spec *)read_as(&dv_message_pod_spec, cases[i].spec)};
        struct dv_buf buf;

        dv_pod_add_account(
            &pod, cases[i].account ? read_as(&dv_message_service_account, cases[i].account) : NULL,
            DV_STR("kube-api-access-x"), arena);
        dv_buf_init(&buf, 65536);
        dv_encode_json_text(&dv_message_pod_spec, &pod.spec, NULL, DV_STR_NONE, &buf);
        assert_str(dv_buf_str(&buf), cases[i].want);
        dv_buf_fini(&buf);
    }
}

static void mirror_pods_have_no_account(void **state)
{
    static const struct {
        const char *spec;
        const char *fault;
    } cases[] = {
        {"{containers: []}",                                                NULL                                                             },
        {"{containers: [], serviceAccountName: a}",
         "a mirror pod may not reference service accounts"                                                                                   },
        {"{containers: [], volumes: [{name: v, secret: {secretName: s}}]}",
         "a mirror pod may not reference secrets"                                                                                            },
        {"{containers: [], volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: "
         "t}}]}}]}",                                               "a mirror pod may not use ServiceAccountToken volume projections"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_pod pod = {
            .spec = *(struct dv_api_pod_spec *)read_as(&dv_message_pod_spec, cases[i].spec)};
        const char *fault = dv_mirror_pod_fault(&pod);

        if (cases[i].fault)
            assert_string_equal(fault, cases[i].fault);
        else
            assert_null(fault);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        doc_test(pods_get_what_their_account_says),
        doc_test(mirror_pods_have_no_account),
    };

    return cmocka_run_group_tests_name("prepare_account", tests, NULL, NULL);
}
