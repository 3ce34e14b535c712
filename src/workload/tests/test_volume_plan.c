#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "workload/tests/test_workload.h"
#include "workload/volume.h"

#define PRINTED_MAX 65536

/* What the cases have in common: a namespace with objects, and a node. */
static const char *const config_maps[] = {
    "{metadata: {name: cm}, data: {a: A, b: B}, binaryData: {z: AAH/}}",
    "{metadata: {name: empty}}",
};
static const char *const secrets[] = {
    "{metadata: {name: sec}, data: {k: a2V5, p: cGFzcw==}}",
};

static struct dv_workload_objects objects(void)
{
    const struct dv_api_config_map **maps =
        DV_NEW_ARRAY(arena, const struct dv_api_config_map *, DV_COUNT(config_maps));
    const struct dv_api_secret **kept =
        DV_NEW_ARRAY(arena, const struct dv_api_secret *, DV_COUNT(secrets));

    for (size_t i = 0; i < DV_COUNT(config_maps); i++)
        maps[i] = test_object(DV_KIND_CONFIG_MAP, config_maps[i]);
    for (size_t i = 0; i < DV_COUNT(secrets); i++)
        kept[i] = test_object(DV_KIND_SECRET, secrets[i]);
    return (struct dv_workload_objects){.config_maps = maps,
                                        .n_config_maps = DV_COUNT(config_maps),
                                        .secrets = kept,
                                        .n_secrets = DV_COUNT(secrets)};
}

static const struct dv_quantity_entry allocatable[] = {
    {DV_STR_INIT("memory"), {.value = 1000000}},
};

static const struct dv_workload_node node = {
    .name = DV_STR_INIT("node-1"),
    .root_dir = DV_STR_INIT("/k"),
    .log_dir = DV_STR_INIT("/l"),
    .allocatable = allocatable,
    .n_allocatable = DV_COUNT(allocatable),
};

static void print_file(struct dv_buf *buf, const struct dv_volume_file *file)
{
    dv_buf_printf(buf, " %.*s:%03o", DV_FMT(file->path), file->mode);
    if (file->uid)
        dv_buf_printf(buf, ":%lld", (long long)*file->uid);
    dv_buf_add_c(buf, "=");
    for (size_t i = 0; i < file->content.n; i++) {
        unsigned char byte = (unsigned char)file->content.p[i];

        if (byte >= ' ' && byte < 0x7f)
            dv_buf_add_char(buf, (char)byte);
        else
            dv_buf_printf(buf, "\\%02x", byte);
    }
}

/* "v kind [ro] [size=N] path files" a volume, or "v: problem". */
static void print_volume(struct dv_buf *buf, const struct dv_volume *volume)
{
    static const char *const kinds[] = {
        [DV_VOLUME_DIRECTORY] = "directory",
        [DV_VOLUME_MEMORY] = "memory",
        [DV_VOLUME_HUGE_PAGES] = "hugepages",
        [DV_VOLUME_FILES] = "files",
        [DV_VOLUME_MEMORY_FILES] = "memory-files",
        [DV_VOLUME_HOST_PATH] = "host",
        [DV_VOLUME_IMAGE] = "image",
    };

    dv_buf_printf(buf, "%s%.*s", buf->n ? "\n" : "", DV_FMT(volume->name));
    if (volume->problem.n > 0) {
        dv_buf_printf(buf, ": %.*s", DV_FMT(volume->problem));
        return;
    }
    dv_buf_printf(buf, " %s%s", kinds[volume->kind], volume->is_read_only ? " ro" : "");
    if (volume->size_bytes)
        dv_buf_printf(buf, " size=%llu", (unsigned long long)volume->size_bytes);
    if (volume->page_bytes)
        dv_buf_printf(buf, " page=%llu", (unsigned long long)volume->page_bytes);
    if (volume->kind == DV_VOLUME_HOST_PATH)
        dv_buf_printf(buf, " type=%d", volume->host_type);
    if (volume->path.n > 0)
        dv_buf_printf(buf, " %.*s", DV_FMT(volume->path));
    for (size_t i = 0; i < volume->n_files; i++)
        print_file(buf, &volume->files[i]);
}

/* A container `c` that mounts volume `v` stands for the rest of the pod. */
struct plan_case {
    const char *volume; /* what is in `v` besides its name */
    const char *spec;   /* more fields of the pod's spec */
    const char *want;
};

static struct dv_volume_plan *plan_text(const char *text, const struct dv_volume_token *tokens,
                                        size_t n_tokens, uint64_t memory_bytes)
{
    struct dv_workload_pod *pod = DV_NEW(arena, struct dv_workload_pod);
    struct dv_workload_objects *all = DV_NEW(arena, struct dv_workload_objects);
    struct dv_volume_input input = {.node = &node,
                                    .pod = pod,
                                    .objects = all,
                                    .tokens = tokens,
                                    .n_tokens = n_tokens,
                                    .memory_bytes = memory_bytes};

    *all = objects();
    pod->pod = test_object(DV_KIND_POD, text);
    pod->uid = DV_STR("u1");
    pod->source = DV_STR("api");
    pod->seen = DV_STR("2026-01-02T03:04:05.000000006Z");
    return dv_volume_plan(&input, arena);
}

static void check_plan(const struct plan_case *test, const struct dv_volume_token *tokens,
                       size_t n_tokens)
{
    char text[4096];
    struct dv_volume_plan *plan;
    struct dv_buf buf;

    (void)snprintf(text, sizeof(text),
                   "{metadata: {name: p, namespace: ns, uid: u1, labels: {x: '1'}, annotations: "
                   "{note: \"a\\nb\"}}, spec: {volumes: [{name: v, %s}], containers: [{name: c, "
                   "resources: {limits: {cpu: 250m}}, volumeMounts: [{name: v, mountPath: /v}]}]"
                   "%s%s}}",
                   test->volume, test->spec[0] ? ", " : "", test->spec);
    plan = plan_text(text, tokens, n_tokens, 0);
    dv_buf_init(&buf, PRINTED_MAX);
    for (size_t i = 0; i < plan->n_volumes; i++)
        print_volume(&buf, &plan->volumes[i]);
    assert_str(dv_buf_str(&buf), test->want);
    dv_buf_fini(&buf);
}

#define CM "/k/pods/u1/volumes/kubernetes.io~configmap/v"
#define SEC "/k/pods/u1/volumes/kubernetes.io~secret/v"
#define EMPTY "/k/pods/u1/volumes/kubernetes.io~empty-dir/v"
#define DOWN "/k/pods/u1/volumes/kubernetes.io~downward-api/v"
#define PROJ "/k/pods/u1/volumes/kubernetes.io~projected/v"
#define IN_MEMORY "v memory-files ro size=1000000 "

/* clang-format off */
static const struct plan_case plain_cases[] = {
    {"emptyDir: {}", "", "v directory " EMPTY},
    {"emptyDir: {medium: Memory}", "", "v memory size=1000000 " EMPTY},
    {"emptyDir: {medium: Memory, sizeLimit: 4Ki}", "", "v memory size=4096 " EMPTY},
    {"emptyDir: {medium: Memory, sizeLimit: 4Gi}", "", "v memory size=1000000 " EMPTY},
    {"emptyDir: {medium: Memory, sizeLimit: '0'}", "", "v memory size=1000000 " EMPTY},
    {"emptyDir: {medium: Tape}", "", "v: unknown storage medium \"Tape\""},
    {"emptyDir: {medium: HugePages}", "",
     "v: medium HugePages: hugePages storage requested, but there is no resource request for huge "
     "pages."},
    {"emptyDir: {medium: HugePages}",
     "initContainers: [{name: i, resources: {requests: {hugepages-2Mi: 4Mi}}}]",
     "v hugepages page=2097152 " EMPTY},
    {"emptyDir: {medium: HugePages}",
     "initContainers: [{name: i, resources: {requests: {hugepages-2Mi: 4Mi, hugepages-1Gi: "
     "1Gi}}}]",
     "v: medium: HugePages can't be used if container requests multiple huge page sizes"},
    {"emptyDir: {medium: HugePages-1Gi}",
     "initContainers: [{name: i, resources: {requests: {hugepages-2Mi: 4Mi, hugepages-1Gi: "
     "1Gi}}}]",
     "v hugepages page=1073741824 " EMPTY},
    {"emptyDir: {medium: HugePages-1Gi}",
     "initContainers: [{name: i, resources: {requests: {hugepages-2Mi: 4Mi}}}]",
     "v: medium HugePages-1Gi: hugePages storage requested, but there is no resource request for "
     "huge pages."},
    {"hostPath: {path: /etc}", "", "v host type=0 /etc"},
    {"hostPath: {path: /etc, type: ''}", "", "v host type=0 /etc"},
    {"hostPath: {path: /a, type: DirectoryOrCreate}", "", "v host type=1 /a"},
    {"hostPath: {path: /a, type: Directory}", "", "v host type=2 /a"},
    {"hostPath: {path: /a, type: FileOrCreate}", "", "v host type=3 /a"},
    {"hostPath: {path: /a, type: File}", "", "v host type=4 /a"},
    {"hostPath: {path: /a, type: Socket}", "", "v host type=5 /a"},
    {"hostPath: {path: /a, type: CharDevice}", "", "v host type=6 /a"},
    {"hostPath: {path: /a, type: BlockDevice}", "", "v host type=7 /a"},
    {"hostPath: {path: /a, type: Pipe}", "", "v: Pipe is an invalid volume type"},
    {"hostPath: {path: /a/../b}", "", "v: invalid HostPath `/a/../b`: must not contain '..'"},
    {"hostPath: {path: a}", "", "v: invalid HostPath `a`: must be an absolute path"},
    {"hostPath: {path: /a..b/..c}", "", "v host type=0 /a..b/..c"},
    {"image: {reference: 'r:1'}", "", "v image ro"},
    {"nfs: {server: s, path: /p}", "",
     "v: no volume plugin matched: this node has emptyDir, hostPath, configMap, secret, "
     "downwardAPI, projected and image volumes"},
    {"secret: null", "", "v directory " EMPTY}, /* the default */
};

static const struct plan_case file_cases[] = {
    {"configMap: {name: cm}", "", "v files ro " CM " a:644=A b:644=B z:644=\\00\\01\\ff"},
    {"configMap: {name: empty}", "", "v files ro " CM},
    {"configMap: {name: cm, defaultMode: 256}", "",
     "v files ro " CM " a:400=A b:400=B z:400=\\00\\01\\ff"},
    {"configMap: {name: cm, items: [{key: z, path: d/../z}]}", "",
     "v: invalid path: must not contain '..': d/../z"},
    {"configMap: {name: cm, items: [{key: a, path: s//d/./a, mode: 493}, {key: b, path: b}]}", "",
     "v files ro " CM " b:644=B s/d/a:755=A"},
    {"configMap: {name: cm, items: [{key: a, path: x}, {key: b, path: x}]}", "",
     "v files ro " CM " x:644=B"},
    {"configMap: {name: cm, items: [{key: a, path: x}, {key: b, path: x/y}]}", "",
     "v: invalid path: x is a file, and is to be a directory for x/y"},
    {"configMap: {name: cm, items: [{key: a, path: x}, {key: b, path: x-y}]}", "",
     "v files ro " CM " x:644=A x-y:644=B"},
    {"configMap: {name: cm, items: [{key: gone, path: x}]}", "",
     "v: configmap references non-existent config key: gone"},
    {"configMap: {name: cm, optional: true, items: [{key: gone, path: x}, {key: a, path: a}]}", "",
     "v files ro " CM " a:644=A"},
    {"configMap: {name: gone}", "", "v: configmap \"gone\" not found"},
    {"configMap: {name: gone, optional: false}", "", "v: configmap \"gone\" not found"},
    {"configMap: {name: gone, optional: true}", "", "v files ro " CM},
    {"configMap: {name: cm, items: [{key: a, path: /x}]}", "",
     "v: invalid path: must be relative path: /x"},
    {"configMap: {name: cm, items: [{key: a, path: ''}]}", "",
     "v: invalid path: must not be empty: "},
    {"configMap: {name: cm, items: [{key: a, path: ./.}]}", "",
     "v: invalid path: must not be empty: ./."},
    {"configMap: {name: cm, items: [{key: a, path: ..data}]}", "",
     "v: invalid path: must not start with '..': ..data"},
    {"configMap: {name: cm, items: [{key: a, path: s/..x}]}", "", "v files ro " CM " s/..x:644=A"},
    {"configMap: {name: cm, items: [{key: a, path: \"x\\0y\"}]}", "",
     "v: invalid path: must not contain a zero byte: x"},
    {"secret: {secretName: sec}", "", IN_MEMORY SEC " k:644=key p:644=pass"},
    {"secret: {secretName: sec, defaultMode: 288, items: [{key: k, path: q}]}", "",
     IN_MEMORY SEC " q:440=key"},
    {"secret: {secretName: gone}", "", "v: secret \"gone\" not found"},
    {"secret: {secretName: gone, optional: true}", "", IN_MEMORY SEC},
    {"secret: {secretName: sec, items: [{key: a, path: a}]}", "",
     "v: references non-existent secret key: a"},
    {"projected: {defaultMode: 416, sources: [{configMap: {name: cm, items: [{key: a, path: "
     "one}]}}, {secret: {name: sec, items: [{key: k, path: one, mode: 256}]}}]}", "",
     IN_MEMORY PROJ " one:400=key"},
    {"projected: {sources: [{configMap: {name: gone}}, {secret: {name: none}}]}", "",
     "v: [configmap \"gone\" not found, secret \"none\" not found]"},
    {"projected: {sources: [{configMap: {name: gone, optional: true}}]}", "", IN_MEMORY PROJ},
    {"projected: {sources: [{clusterTrustBundle: {path: x}}]}", "",
     "v: cluster trust bundles are not served by this node"},
    {"projected: {sources: [{clusterTrustBundle: {path: x, optional: true}}]}", "",
     IN_MEMORY PROJ},
    {"projected: {sources: [{podCertificate: {signerName: s}}]}", "",
     "v: pod certificates are not served by this node"},
    {"projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 3607}}]}", "",
     "v: failed to fetch token: there is none yet"},
};

static const struct plan_case downward_cases[] = {
    {"downwardAPI: {items: [{path: nm, fieldRef: {fieldPath: metadata.name}}, {path: l, fieldRef: "
     "{fieldPath: metadata.labels}, mode: 384}]}", "",
     IN_MEMORY DOWN " l:600=x=\"1\" nm:644=p"},
    {"downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.annotations}}]}", "",
     IN_MEMORY DOWN " a:644=kubernetes.io/config.seen=\"2026-01-02T03:04:05.000000006Z\"\\0a"
     "kubernetes.io/config.source=\"api\"\\0anote=\"a\\nb\""},
    {"downwardAPI: {items: [{path: c, resourceFieldRef: {containerName: c, resource: limits.cpu, "
     "divisor: 1m}}]}", "", IN_MEMORY DOWN " c:644=250"},
    {"downwardAPI: {items: [{path: c, resourceFieldRef: {containerName: d, resource: "
     "limits.cpu}}]}", "", "v: container d not found"},
    {"downwardAPI: {items: [{path: c, fieldRef: {fieldPath: spec.x}}]}", "",
     "v: unsupported fieldPath: spec.x"},
};

#define TOKEN_VOLUME                                                                               \
    "projected: {sources: [{serviceAccountToken: {path: t, audience: aud, expirationSeconds: "     \
    "600}}]}"

static const struct plan_case token_cases[] = {
    {TOKEN_VOLUME, "", IN_MEMORY PROJ " t:644=SECRET"},
    {TOKEN_VOLUME, "securityContext: {fsGroup: 5}", IN_MEMORY PROJ " t:600=SECRET"},
    {TOKEN_VOLUME, "securityContext: {runAsUser: 7}", IN_MEMORY PROJ " t:600:7=SECRET"},
    {TOKEN_VOLUME,
     "securityContext: {runAsUser: 7}, initContainers: [{name: i, securityContext: {runAsUser: "
     "8}}]",
     IN_MEMORY PROJ " t:644=SECRET"},
    {"projected: {sources: [{serviceAccountToken: {path: t, audience: gone, expirationSeconds: "
     "600}}]}", "", "v: failed to fetch token: serviceaccounts \"x\" not found"},
};
/* clang-format on */

static void each_kind_of_volume_has_its_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(plain_cases); i++)
        check_plan(&plain_cases[i], NULL, 0);
}

static void files_come_from_objects(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(file_cases); i++)
        check_plan(&file_cases[i], NULL, 0);
}

static void files_tell_of_the_pod(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(downward_cases); i++)
        check_plan(&downward_cases[i], NULL, 0);
}

static void a_token_belongs_to_who_reads_it(void **state)
{
    static const struct dv_volume_token tokens[] = {
        {.audience = DV_STR_INIT("aud"),  .lifetime_s = 600, .text = DV_STR_INIT("SECRET")},
        {.audience = DV_STR_INIT("gone"),
         .lifetime_s = 600,
         .problem = DV_STR_INIT("serviceaccounts \"x\" not found")                        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(token_cases); i++)
        check_plan(&token_cases[i], tokens, DV_COUNT(tokens));
}

static void wanted_tokens_are_each_told_once(void **state)
{
    const struct dv_api_pod *pod = test_object(
        DV_KIND_POD,
        "{spec: {volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: "
        "t, expirationSeconds: 3607}}, {serviceAccountToken: {path: u, audience: x, "
        "expirationSeconds: 3607}}]}}, {name: b, projected: {sources: "
        "[{serviceAccountToken: {path: t, expirationSeconds: 3607}}, "
        "{serviceAccountToken: {path: q}}]}}]}}");
    size_t n;
    struct dv_volume_token *tokens = dv_volume_tokens(pod, arena, &n);

    (void)state;
    assert_int_equal(n, 3);
    assert_str(tokens[0].audience, "");
    assert_int_equal(tokens[0].lifetime_s, 3600); /* the default */
    assert_str(tokens[1].audience, "");
    assert_int_equal(tokens[1].lifetime_s, 3607);
    assert_str(tokens[2].audience, "x");
    for (size_t i = 0; i < n; i++) {
        struct dv_api_service_account_token_projection wanted = {
            .audience = tokens[i].audience, .expiration_seconds = &tokens[i].lifetime_s};

        assert_ptr_equal(dv_volume_token_find(tokens, n, &wanted), &tokens[i]);
    }
}

static void a_token_is_got_anew_in_time(void **state)
{
    static const struct {
        int64_t issued_s;
        int64_t expires_s;
        int64_t due_s;
    } cases[] = {
        {1000, 1600,             1480 },
        {0,    3607,             2885 },
        {0,    200000,           86400},
        {50,   50,               50   },
        {50,   10,               50   },
        {0,    INT64_C(1) << 62, 86400},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(dv_volume_token_due_s(cases[i].issued_s, cases[i].expires_s),
                         cases[i].due_s);
}

static void a_volume_that_nobody_mounts_is_left_out(void **state)
{
    struct dv_volume_plan *plan = plan_text(
        "{metadata: {name: p, namespace: ns}, spec: {volumes: [{name: a, secret: "
        "{secretName: gone}}, {name: b, emptyDir: {}}, {name: c, emptyDir: {}}, {name: d, "
        "emptyDir: {}}, {name: e, emptyDir: {}}], initContainers: [{name: i, "
        "volumeMounts: [{name: d}]}], containers: [{name: c, volumeMounts: [{name: "
        "b}]}], ephemeralContainers: [{name: e, volumeMounts: [{name: e}]}], "
        "securityContext: {fsGroup: 9, fsGroupChangePolicy: OnRootMismatch}}}",
        NULL, 0, 0);

    (void)state;
    assert_int_equal(plan->n_volumes, 3);
    assert_int_equal(plan->n_problems, 0);
    assert_str(plan->volumes[0].name, "b");
    assert_str(plan->volumes[1].name, "d");
    assert_str(plan->volumes[2].name, "e");
    assert_int_equal(*plan->fs_group, 9);
    assert_str(plan->pod_dir, "/k/pods/u1");
    assert_str(plan->log_dir, "/l/ns_p_u1");
    assert_null(dv_volume_find(plan, DV_STR("a")));
    assert_non_null(dv_volume_find(plan, DV_STR("d")));
    assert_str(dv_volume_sub_path_place(plan, DV_STR("b"), DV_STR("c"), 2, arena),
               "/k/pods/u1/volume-subpaths/b/c/2");
    assert_str(dv_volume_event(DV_STR("v"), DV_STR("secret \"none-such\" not found"), arena),
               "MountVolume.SetUp failed for volume \"v\" : secret \"none-such\" not found");
}

static void the_pods_own_limit_counts_for_memory(void **state)
{
    struct dv_volume_plan *plan =
        plan_text("{spec: {volumes: [{name: a, emptyDir: {medium: Memory}}, {name: b/x, emptyDir: "
                  "{}}], containers: [{name: c, volumeMounts: [{name: a}, {name: b/x}]}]}}",
                  NULL, 0, 4096);

    (void)state;
    assert_int_equal(plan->volumes[0].size_bytes, 4096);
    assert_str(plan->volumes[1].problem, "the volume's name is not a label of DNS");
    assert_int_equal(plan->n_problems, 1);
}

/* A pod of n volumes, in each of which are all of its labels k times. */
static struct dv_volume_plan *plan_copies(size_t n, size_t k, size_t label_bytes)
{
    struct dv_api_object_field_selector labels = {.field_path = DV_STR("metadata.labels")};
    struct dv_api_downward_api_volume_file *items =
        DV_NEW_ARRAY(arena, struct dv_api_downward_api_volume_file, k);
    struct dv_api_downward_api_volume_source source = {.items = items, .n_items = k};
    char *text = DV_NEW_ARRAY(arena, char, label_bytes);
    struct dv_str_entry label = {
        .key = DV_STR("l"), .value = {text, label_bytes}
    };
    struct dv_workload_pod pod = test_pod("containers: [{name: c, image: x}]");
    struct dv_api_pod large = *pod.pod;
    struct dv_volume_input input = {.node = &node, .pod = &pod};

    memset(text, 'x', label_bytes);
    for (size_t i = 0; i < k; i++)
        items[i] = (struct dv_api_downward_api_volume_file){.path = dv_str_printf(arena, "f%zu", i),
                                                            .field_ref = &labels};
    large.metadata.labels = &label;
    large.metadata.n_labels = 1;
    large.spec.volumes = DV_NEW_ARRAY(arena, struct dv_api_volume, n);
    large.spec.n_volumes = n;
    large.spec.containers[0].volume_mounts = DV_NEW_ARRAY(arena, struct dv_api_volume_mount, n);
    large.spec.containers[0].n_volume_mounts = n;
    for (size_t i = 0; i < n; i++) {
        large.spec.volumes[i].name = dv_str_printf(arena, "v%zu", i);
        large.spec.volumes[i].volume_source.downward_api = &source;
        large.spec.containers[0].volume_mounts[i].name = large.spec.volumes[i].name;
    }
    pod.pod = &large;
    return dv_volume_plan(&input, arena);
}

/* A pod that is as large as a request may be could fill the memory of davitd with its plan. */
static void labels_are_printed_once(void **state)
{
    struct dv_volume_plan *plan = plan_copies(2, 3, 1000);

    (void)state;
    assert_int_equal(plan->n_problems, 0);
    assert_int_equal(plan->volumes[0].files[0].content.n, 1004);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 3; k++)
            assert_ptr_equal(plan->volumes[i].files[k].content.p,
                             plan->volumes[0].files[0].content.p);
}

/* And the disk of the node with its files. */
static void all_files_together_have_a_limit(void **state)
{
    struct dv_volume_plan *plan = plan_copies(3, 1000, 100000);

    (void)state;
    assert_int_equal(plan->volumes[0].n_files, 1000);
    assert_str(plan->volumes[1].problem,
               "the files of the pod's volumes have more than 134217728 bytes");
    assert_int_equal(plan->n_problems, 2);
}

/* Whoever asks for one learns what it takes. */
static void images_need_a_runtime_that_mounts_them(void **state)
{
    struct dv_workload_node other = test_node();
    struct dv_workload_pod pod = test_pod(
        "volumes: [{name: v, image: {reference: 'r:1'}}], containers: [{name: c, image: x, "
        "volumeMounts: [{name: v, mountPath: /v}]}]");
    struct dv_workload_objects objects = {0};
    struct dv_volume_input input = {.node = &other, .pod = &pod, .objects = &objects};

    (void)state;
    assert_str(dv_volume_plan(&input, arena)->volumes[0].problem, "");
    other.lacks_image_volumes = true;
    other.runtime_name = DV_STR("containerd");
    other.runtime_version = DV_STR("1.6.20~ds1");
    assert_str(dv_volume_plan(&input, arena)->volumes[0].problem,
               "image volumes need containerd 2.1 or CRI-O 1.31; this is containerd 1.6.20~ds1");
}

static void sub_paths_lead_down(void **state)
{
    static const struct {
        dv_str path;
        const char *fault;
    } cases[] = {
        {DV_STR_INIT("a/b"),    NULL                          },
        {DV_STR_INIT(""),       NULL                          },
        {DV_STR_INIT("a/..b"),  NULL                          },
        {DV_STR_INIT("/a"),     "must not be an absolute path"},
        {DV_STR_INIT("a/../b"), "must not contain '..'"       },
        {DV_STR_INIT(".."),     "must not contain '..'"       },
        {DV_STR_INIT("a\0b"),   "must not contain a zero byte"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *fault = dv_volume_sub_path_fault(cases[i].path);

        if (cases[i].fault)
            assert_string_equal(fault, cases[i].fault);
        else
            assert_null(fault);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        doc_test(each_kind_of_volume_has_its_plan),
        doc_test(files_come_from_objects),
        doc_test(files_tell_of_the_pod),
        doc_test(a_token_belongs_to_who_reads_it),
        doc_test(wanted_tokens_are_each_told_once),
        doc_test(a_token_is_got_anew_in_time),
        doc_test(a_volume_that_nobody_mounts_is_left_out),
        doc_test(the_pods_own_limit_counts_for_memory),
        doc_test(labels_are_printed_once),
        doc_test(all_files_together_have_a_limit),
        doc_test(images_need_a_runtime_that_mounts_them),
        doc_test(sub_paths_lead_down),
    };

    return cmocka_run_group_tests_name("volume_plan", tests, NULL, NULL);
}
