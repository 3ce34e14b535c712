#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/tests/test_values.h"

static bool note(void *ctx, const struct dv_reference *reference)
{
    struct dv_buf *buf = ctx;

    dv_buf_printf(buf, "%s%.*s:%.*s", buf->n ? " " : "", DV_FMT(reference->what),
                  DV_FMT(reference->name));
    return true;
}

static bool stop(void *ctx, const struct dv_reference *reference)
{
    (void)ctx;
    (void)reference;
    return false;
}

static const struct {
    const char *pod;
    const char *want;
} cases[] = {
    {"{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}",                                             ""                                                                                    },
    {"{\"spec\":{\"serviceAccountName\":\"a\"}}",                                                  "serviceaccounts:a"                                                                   },
    {"{\"spec\":{\"serviceAccount\":\"old\"}}",                                                    "serviceaccounts:old"                                                                 },
    {"{\"spec\":{\"imagePullSecrets\":[{\"name\":\"p\"}]}}",                                       "secrets:p"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"secret\":{\"secretName\":\"s\"}}]}}",                             "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"azureFile\":{\"secretName\":\"s\"}}]}}",                          "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"iscsi\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                    "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"rbd\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                      "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"cephfs\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                   "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"flexVolume\":{\"secretRef\":{\"name\":\"s\"}}}]}}",               "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"cinder\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                   "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"scaleIO\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                  "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"storageos\":{\"secretRef\":{\"name\":\"s\"}}}]}}",                "secrets:s"                                                                           },
    {"{\"spec\":{\"volumes\":[{\"csi\":{\"driver\":\"d\",\"nodePublishSecretRef\":{\"name\":"
     "\"s\"}}}]}}",                                                                           "secrets:s csidrivers:d"                                                              },
    {"{\"spec\":{\"volumes\":[{\"configMap\":{\"name\":\"m\"}}]}}",                                "configmaps:m"                                                                        },
    {"{\"spec\":{\"volumes\":[{\"projected\":{\"sources\":[{\"secret\":{\"name\":\"s\"}},"
     "{\"configMap\":{\"name\":\"m\"}},{\"serviceAccountToken\":{\"path\":\"t\"}},"
     "{\"downwardAPI\":{}},{\"clusterTrustBundle\":{\"path\":\"b\"}}]}}]}}",                  "secrets:s configmaps:m serviceaccounts (via projected volumes): clustertrustbundles:"},
    {"{\"spec\":{\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"v\"}}]}}",
     "persistentvolumeclaims:v"                                                                                                                                                          },
    {"{\"spec\":{\"volumes\":[{\"ephemeral\":{}}]}}",                                              "persistentvolumeclaims:"                                                             },
    {"{\"spec\":{\"volumes\":[{\"glusterfs\":{\"endpoints\":\"e\"}}]}}",                           "endpoints:"                                                                          },
    {"{\"spec\":{\"volumes\":[{\"hostPath\":{\"path\":\"/\"}},{\"emptyDir\":{}}]}}",               ""                                                                                    },
    {"{\"spec\":{\"containers\":[{\"env\":[{\"name\":\"E\",\"valueFrom\":{\"secretKeyRef\":{"
     "\"name\":\"s\",\"key\":\"k\"}}}]}]}}",                                                  "secrets:s"                                                                           },
    {"{\"spec\":{\"initContainers\":[{\"envFrom\":[{\"secretRef\":{\"name\":\"s\"}}]}]}}",
     "secrets:s"                                                                                                                                                                         },
    {"{\"spec\":{\"ephemeralContainers\":[{\"envFrom\":[{\"configMapRef\":{\"name\":\"m\"}}]}]}}",
     "configmaps:m"                                                                                                                                                                      },
    {"{\"spec\":{\"ephemeralContainers\":[{\"env\":[{\"valueFrom\":{\"configMapKeyRef\":{"
     "\"name\":\"m\",\"key\":\"k\"}}}]}]}}",                                                  "configmaps:m"                                                                        },
    {"{\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimName\":\"c\"}]}}",
     "resourceclaims:c"                                                                                                                                                                  },
    {"{\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"t\"}]}}",
     "resourceclaims:"                                                                                                                                                                   },
    {"{\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"t\"}]},"
     "\"status\":{\"resourceClaimStatuses\":[{\"name\":\"b\",\"resourceClaimName\":\"x\"},"
     "{\"name\":\"a\",\"resourceClaimName\":\"made\"}]}}",                                    "resourceclaims:made"                                                                 },
    {"{\"status\":{\"resourceClaimStatuses\":[{\"name\":\"a\",\"resourceClaimName\":\"x\"}]}}",    ""                                                                                    },
    {"{\"status\":{\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"e\"}}}",
     "resourceclaims:e"                                                                                                                                                                  },
};

static void visits_every_reference_of_a_pod(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_pod *pod = decoded(&dv_message_pod, cases[i].pod, arena);
        struct dv_buf buf;

        dv_buf_init(&buf, 4096);
        assert_true(dv_pod_visit_references(pod, note, &buf));
        if (!dv_str_eq(dv_buf_str(&buf), dv_str_from_c(cases[i].want)))
            fail_msg("%s: %s", cases[i].pod, dv_buf_c(&buf));
        assert_int_equal(dv_pod_visit_references(pod, stop, NULL), cases[i].want[0] == '\0');
        dv_buf_fini(&buf);
    }
}

static void a_mirror_pod_is_known_by_its_annotation(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    assert_true(dv_pod_is_mirror(
        decoded(&dv_message_pod,
                "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":\"\"}}}", arena)));
    assert_false(dv_pod_is_mirror(decoded(&dv_message_pod, "{}", arena)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visits_every_reference_of_a_pod),
        cmocka_unit_test(a_mirror_pod_is_known_by_its_annotation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
