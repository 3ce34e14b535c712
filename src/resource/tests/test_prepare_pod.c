/* What pods get from their service account and their RuntimeClass. */
#include "resource/prepare.h"
#include "support/docs.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/pod_security.h"
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

/* ---- classes of runtimes ---- */

#define MISMATCH "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

static const char *spec_text(const struct dv_api_pod *pod)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_json_text(&dv_message_pod_spec, &pod->spec, NULL, DV_STR_NONE, &buf);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

static void pods_get_what_their_class_says(void **state)
{
    static const struct {
        const char *spec;
        const char *class;
        const char *want; /* the spec, or why the pod is refused */
    } cases[] = {
        {"{}",                                                                                   "{}",                                               "{\"containers\":null}"                                            },
        {"{}",                                                                                   "{overhead: {podFixed: {cpu: 250m, memory: 1Mi}}}",
         "{\"containers\":null,\"overhead\":{\"cpu\":\"250m\",\"memory\":\"1Mi\"}}"                                                                                                                                     },
        {"{overhead: {cpu: 0.25}}",                                                              "{overhead: {podFixed: {cpu: 250m}}}",
         "{\"containers\":null,\"overhead\":{\"cpu\":\"250m\"}}"                                                                                                                                                        },
        {"{overhead: {cpu: 1}}",                                                                 "{overhead: {podFixed: {cpu: 250m}}}",              MISMATCH                                                           },
        {"{overhead: {memory: 1}}",                                                              "{overhead: {podFixed: {cpu: 1}}}",                 MISMATCH                                                           },
        {"{overhead: {}}",                                                                       "{overhead: {podFixed: {cpu: 1}}}",                 MISMATCH                                                           },
        {"{}",                                                                                   "{scheduling: {nodeSelector: {a: b}}}",
         "{\"containers\":null,\"nodeSelector\":{\"a\":\"b\"}}"                                                                                                                                                         },
        {"{nodeSelector: {a: b, c: d}}",                                                         "{scheduling: {nodeSelector: {b: x, c: d, e: z}}}",
         "{\"containers\":null,\"nodeSelector\":{\"a\":\"b\",\"b\":\"x\",\"c\":\"d\",\"e\":\"z\"}"
         "}"                                                                                                                                                                                                            },
        {"{nodeSelector: {c: d}}",                                                               "{scheduling: {nodeSelector: {c: e}}}",
         "conflict: runtimeClass.scheduling.nodeSelector[c] = e; pod.spec.nodeSelector[c] = d"                                                                                                                          },
        {"{tolerations: [{key: a, operator: Exists}, {key: b, operator: Exists}]}",
         "{scheduling: {tolerations: [{key: b, operator: Exists}, {key: c, operator: Exists}]}}",                                                    "{\"containers\":null,\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":"
         "\"b\",\"operator\":\"Exists\"},{\"key\":\"c\",\"operator\":\"Exists\"}]}"                                    },
 /* what another one covers is left out, whichever comes first */
        {"{tolerations: [{key: a, operator: Equal, value: v, effect: NoSchedule}]}",
         "{scheduling: {tolerations: [{operator: Exists}]}}",                                                                                        "{\"containers\":null,\"tolerations\":[{\"operator\":\"Exists\"}]}"},
        {"{tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]}",
         "{scheduling: {tolerations: [{key: a, operator: Exists, effect: NoExecute, "
         "tolerationSeconds: 3}]}}",                                                                                                                 "{\"containers\":null,\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":"
         "\"NoExecute\",\"tolerationSeconds\":5}]}"                                                                                                                                 },
        {"{tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]}",
         "{scheduling: {tolerations: [{key: a, operator: Exists, effect: NoExecute}]}}",                                                             "{\"containers\":null,\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\",\"effect\":"
         "\"NoExecute\"}]}"                                                                                                     },
        {"{tolerations: [{key: a, value: v}]}",
         "{scheduling: {tolerations: [{key: a, operator: Equal, value: w}, {key: a, operator: "
         "Equal, value: v}]}}",                                                                                                                      "{\"containers\":null,\"tolerations\":[{\"key\":\"a\",\"value\":\"v\"},{\"key\":\"a\","
         "\"operator\":\"Equal\",\"value\":\"w\"}]}"                                                                                                                                     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_pod pod = {
            .spec = *(struct dv_api_pod_spec *)read_as(&dv_message_pod_spec, cases[i].spec)};
        const struct dv_api_runtime_class *class =
            read_as(&dv_message_runtime_class, cases[i].class);
        const char *fault = dv_pod_add_runtime_class(&pod, class, arena);

        assert_string_equal(fault ? fault : spec_text(&pod), cases[i].want);
        if (!fault)
            assert_null(dv_pod_overhead_fault(&pod, class));
    }
}

static void an_overhead_needs_a_class_that_has_it(void **state)
{
    static const char want[] =
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    const struct dv_api_pod *pod = read_as(&dv_message_pod, "{spec: {overhead: {cpu: 1}}}");

    (void)state;
    assert_string_equal(dv_pod_overhead_fault(pod, NULL), want);
    assert_string_equal(
        dv_pod_overhead_fault(pod, read_as(&dv_message_runtime_class, "{handler: h}")), want);
    assert_null(dv_pod_overhead_fault(read_as(&dv_message_pod, "{}"), NULL));
}

/* Each toleration is held against all others, but not when there are very many. */
static void many_tolerations_are_kept_as_they_are(void **state)
{
    enum { N = 100000 };
    const struct dv_api_runtime_class *class = read_as(
        &dv_message_runtime_class, "{scheduling: {tolerations: [{key: a, operator: Exists}]}}");
    struct dv_api_pod pod = {
        .spec = {.tolerations = DV_NEW_ARRAY(arena, struct dv_api_toleration, N),
                 .n_tolerations = N}
    };

    (void)state;
    for (size_t i = 0; i < N; i++)
        pod.spec.tolerations[i] = (struct dv_api_toleration){.key = DV_STR("a")};
    assert_null(dv_pod_add_runtime_class(&pod, class, arena));
    assert_int_equal(pod.spec.n_tolerations, N + 1);
}

#define NAMESPACE(level) "{labels: {pod-security.kubernetes.io/enforce: " level "}}"
#define ONE(context) "{containers: [{name: c, securityContext: {" context "}}]}"
#define BASELINE "PodSecurity \"baseline:latest\": "
#define RESTRICTED "PodSecurity \"restricted:latest\": "
#define CAREFUL                                                                                    \
    "allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, "           \
    "seccompProfile: {type: RuntimeDefault}"

static void pods_are_held_to_the_standard_of_their_namespace(void **state)
{
    static const struct {
        const char *namespace;
        const char *spec;
        const char *want; /* "": nothing */
    } rows[] = {
        {"{}",                                                           ONE("privileged: true"),                                          ""},
        {NAMESPACE("privileged"),                                        ONE("privileged: true"),                                          ""},
        {NAMESPACE("baseline"),                                          ONE(""),                                                          ""},
        {NAMESPACE("baseline"),                                          ONE("capabilities: {add: [CHOWN, KILL]}, procMount: Default"),    ""},
        {NAMESPACE("baseline"),
         "{containers: [{name: a, securityContext: {privileged: true}}, {name: b}], "
         "initContainers: "
         "[{name: i, securityContext: {privileged: true}}], volumes: [{name: cdi, hostPath: {path: "
         "/x}}], hostPID: true}",                                                                                                          BASELINE "host namespaces (hostPID=true), hostPath volumes (volume \"cdi\"), privileged "
                  "(containers \"i\", \"a\" must not set securityContext.privileged=true)"                  },
        {NAMESPACE("baseline"),                                          ONE("capabilities: {add: [SYS_TIME, KILL, NET_RAW]}"),
         BASELINE "non-default capabilities (container \"c\" must not include \"NET_RAW\", "
                  "\"SYS_TIME\" in securityContext.capabilities.add)"                                                                        },
        {NAMESPACE("baseline"),
         "{containers: [{name: c, ports: [{hostPort: 80}, {hostPort: 0}], livenessProbe: {httpGet: "
         "{host: h}}}]}",                                                                                                                  BASELINE "hostPort (container \"c\" uses hostPort 80), probe or lifecycle host (container "
                  "\"c\" uses probe or lifecycle host \"h\")"                                                       },
        {"{labels: {pod-security.kubernetes.io/enforce: baseline, "
         "pod-security.kubernetes.io/enforce-version: v1.33}}", "{containers: [{name: c, livenessProbe: {httpGet: {host: h}}}]}", ""},
        {NAMESPACE("baseline"),
         "{securityContext: {seLinuxOptions: {role: r}, seccompProfile: {type: Unconfined}, "
         "sysctls: "
         "[{name: kernel.x}, {name: net.ipv4.tcp_syncookies}]}, containers: [{name: c, "
         "securityContext: {seLinuxOptions: {type: t}, appArmorProfile: {type: Unconfined}}}]}",                                           BASELINE
         "forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to "
         "\"Unconfined\"), seLinuxOptions (pod and container \"c\" set forbidden "
         "securityContext.seLinuxOptions: type \"t\"; role may not be set), seccompProfile "
         "(pod must not set securityContext.seccompProfile.type to \"Unconfined\"), "
         "forbidden sysctls (kernel.x)"      },
        {NAMESPACE("restricted"),                                        ONE(CAREFUL),                                                     ""},
        {NAMESPACE("restricted"),
         "{os: {name: windows}, securityContext: {runAsNonRoot: true}, containers: [{name: c}]}",                                          ""},
        {NAMESPACE("restricted"),                                        ONE(""),
         RESTRICTED
         "allowPrivilegeEscalation != false (container \"c\" must set "
         "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
         "\"c\" "
         "must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
         "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
         "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
         "\"Localhost\")"                                                                                                                    },
        {NAMESPACE("restricted"),
         "{securityContext: {runAsUser: 0}, containers: [{name: c, securityContext: {" CAREFUL
         "}}], volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {}}, {name: d, nfs: "
         "{}}]}",                                                                                                                          RESTRICTED "restricted volume types (volumes \"a\", \"d\" use restricted volume types "
                    "\"hostPath\", \"nfs\"), runAsUser=0 (pod must not set runAsUser=0)"                                    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        static const struct dv_api_object_meta none;
        const struct dv_api_pod_spec *spec = read_as(&dv_message_pod_spec, rows[i].spec);

        assert_str(dv_pod_security_violations(read_as(&dv_message_object_meta, rows[i].namespace),
                                              DV_POD_SECURITY_ENFORCE, &none, spec, arena),
                   rows[i].want);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        doc_test(pods_get_what_their_account_says),
        doc_test(mirror_pods_have_no_account),
        doc_test(pods_are_held_to_the_standard_of_their_namespace),
        doc_test(pods_get_what_their_class_says),
        doc_test(an_overhead_needs_a_class_that_has_it),
        doc_test(many_tolerations_are_kept_as_they_are),
    };

    return cmocka_run_group_tests_name("prepare_pod", tests, NULL, NULL);
}
