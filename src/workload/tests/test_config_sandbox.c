/* test_config_sandbox.c - what a runtime is told of a pod as a whole: names, DNS, ports,
 * namespaces, cgroups, and the hosts file of its containers. */
#include "workload/tests/test_config.h"

#define C "containers: [{name: c, image: x}]"
#define X10 "xxxxxxxxxx"
#define X50 X10 X10 X10 X10 X10

static CriV1__PodSandboxConfig *make(const struct dv_workload_node *node,
                                     const struct dv_workload_pod *pod,
                                     struct dv_config_notes *notes)
{
    struct dv_config_notes ignored = {0};
    struct dv_err err;
    CriV1__PodSandboxConfig *config =
        dv_config_sandbox(node, pod, 3, arena, notes ? notes : &ignored, &err);

    assert_ok(config, &err);
    return config;
}

static CriV1__PodSandboxConfig *make_plain(const char *spec)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(spec);

    return make(&node, &pod, NULL);
}

static void a_plain_pod_has_its_names(void **state)
{
    CriV1__PodSandboxConfig *config = make_plain(C);
    static const char *const labels[] = {"app", "io.kubernetes.pod.name",
                                         "io.kubernetes.pod.namespace", "io.kubernetes.pod.uid"};

    (void)state;
    assert_string_equal(config->metadata->name, "p");
    assert_string_equal(config->metadata->namespace_, "ns");
    assert_string_equal(config->metadata->uid, TEST_UID);
    assert_int_equal(config->metadata->attempt, 3);
    assert_string_equal(config->hostname, "p");
    assert_string_equal(config->log_directory, "/var/log/pods/ns_p_" TEST_UID);
    assert_int_equal(config->n_labels, DV_COUNT(labels));
    for (size_t i = 0; i < DV_COUNT(labels); i++)
        assert_string_equal(config->labels[i]->key, labels[i]);
    assert_int_equal(config->n_annotations, 3);
    assert_string_equal(config->annotations[0]->key, "kubernetes.io/config.seen");
    assert_string_equal(config->annotations[0]->value, "2026-01-02T03:04:05Z");
    assert_string_equal(config->annotations[1]->value, "api");
    assert_string_equal(config->annotations[2]->value, "hello");
    assert_int_equal(config->linux->security_context->seccomp->profile_type,
                     CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault);
    assert_int_equal(config->linux->resources->cpu_shares, 2);
    assert_int_equal(config->linux->overhead->cpu_period, 0);
}

static void namespaces_follow_the_pod(void **state)
{
    static const struct {
        const char *spec;
        CriV1__NamespaceMode network;
        CriV1__NamespaceMode pid;
        CriV1__NamespaceMode ipc;
    } cases[] = {
        {C,                                                   CRI_V1__NAMESPACE_MODE__POD,  CRI_V1__NAMESPACE_MODE__CONTAINER,
         CRI_V1__NAMESPACE_MODE__POD                                                                                                                       },
        {"hostNetwork: true, " C,                             CRI_V1__NAMESPACE_MODE__NODE, CRI_V1__NAMESPACE_MODE__CONTAINER,
         CRI_V1__NAMESPACE_MODE__POD                                                                                                                       },
        {"hostPID: true, hostIPC: true, " C,                  CRI_V1__NAMESPACE_MODE__POD,
         CRI_V1__NAMESPACE_MODE__NODE,                                                                                         CRI_V1__NAMESPACE_MODE__NODE},
        {"shareProcessNamespace: true, " C,                   CRI_V1__NAMESPACE_MODE__POD,
         CRI_V1__NAMESPACE_MODE__POD,                                                                                          CRI_V1__NAMESPACE_MODE__POD },
        {"shareProcessNamespace: false, hostUsers: true, " C, CRI_V1__NAMESPACE_MODE__POD,
         CRI_V1__NAMESPACE_MODE__CONTAINER,                                                                                    CRI_V1__NAMESPACE_MODE__POD },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const CriV1__NamespaceOption *options =
            make_plain(cases[i].spec)->linux->security_context->namespace_options;

        assert_int_equal(options->network, cases[i].network);
        assert_int_equal(options->pid, cases[i].pid);
        assert_int_equal(options->ipc, cases[i].ipc);
        assert_int_equal(options->userns_options->mode, CRI_V1__NAMESPACE_MODE__NODE);
    }
}

static void hostnames_are_cut_and_qualified(void **state)
{
    static const struct {
        const char *spec;
        const char *hostname;
        const char *domain;
    } cases[] = {
        {C,                                                               "p",                        ""                      },
        {"hostname: h, " C,                                               "h",                        ""                      },
        {"subdomain: s, " C,                                              "p",                        "s.ns.svc.cluster.local"},
        {"hostname: h, subdomain: s, setHostnameAsFQDN: true, " C,        "h.s.ns.svc.cluster.local",
         "s.ns.svc.cluster.local"                                                                                             },
        {"hostname: h, setHostnameAsFQDN: true, " C,                      "h",                        ""                      },
        {"hostname: " X50 "xxxxxxxxxxxx-yz, " C,                          X50 "xxxxxxxxxxxx",         ""                      },
        {"hostNetwork: true, hostname: h, " C,                            "",                         ""                      },
        {"hostnameOverride: over.example, hostname: h, subdomain: s, " C, "over.example",             ""                      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_workload_node node = test_node();
        struct dv_workload_pod pod = test_pod(cases[i].spec);

        assert_string_equal(make(&node, &pod, NULL)->hostname, cases[i].hostname);
        assert_str(dv_config_domain(&node, &pod, arena), cases[i].domain);
    }
}

static void refuses_a_name_that_the_kernel_does_not_take(void **state)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod =
        test_pod("hostname: " X50 ", subdomain: s, setHostnameAsFQDN: true, " C);
    struct dv_config_notes notes = {0};
    struct dv_err err;

    (void)state;
    assert_null(dv_config_sandbox(&node, &pod, 0, arena, &notes, &err));
    assert_err(&err, DV_INVALID_ARGUMENT,
               ".s.ns.svc.cluster.local is too long (64 characters is the max, 73 characters "
               "requested)");
}

static void dns_follows_the_policy(void **state)
{
    static const struct {
        const char *spec;
        const char *servers;
        const char *searches;
        const char *options;
    } cases[] = {
        {C,                                                           "10.0.0.10",  "ns.svc.cluster.local svc.cluster.local cluster.local corp.example",
         "ndots:5"                                                                                                                                                               },
        {"hostNetwork: true, " C,                                     "192.0.2.53", "corp.example",                                                      "timeout:2"             },
        {"hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, " C, "10.0.0.10",
         "ns.svc.cluster.local svc.cluster.local cluster.local corp.example",                                                                            "ndots:5"               },
        {"dnsPolicy: Default, " C,                                    "192.0.2.53", "corp.example",                                                      "timeout:2"             },
        {"dnsPolicy: None, dnsConfig: {nameservers: [1.1.1.1]}, " C,  "1.1.1.1",    "",                                                                  ""                      },
        {"dnsPolicy: Default, dnsConfig: {nameservers: [1.1.1.1, 192.0.2.53], searches: "
         "[a.example, corp.example], options: [{name: timeout, value: '9'}, {name: rotate}, {name: "
         "ndots, value: ''}]}, " C,
         "192.0.2.53 1.1.1.1",                                                      "corp.example a.example",                                            "timeout:9 rotate ndots"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const CriV1__DNSConfig *dns = make_plain(cases[i].spec)->dns_config;

        assert_string_equal(test_join(dns->servers, dns->n_servers), cases[i].servers);
        assert_string_equal(test_join(dns->searches, dns->n_searches), cases[i].searches);
        assert_string_equal(test_join(dns->options, dns->n_options), cases[i].options);
    }
}

static void dns_is_cut_to_what_resolvers_take(void **state)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod =
        test_pod("dnsConfig: {nameservers: [1.1.1.1, 2.2.2.2, 3.3.3.3]}, " C);
    struct dv_config_notes notes = {0};
    const CriV1__DNSConfig *dns = make(&node, &pod, &notes)->dns_config;
    dv_str *searches = DV_NEW_ARRAY(arena, dv_str, 40);

    (void)state;
    assert_string_equal(test_join(dns->servers, dns->n_servers), "10.0.0.10 1.1.1.1 2.2.2.2");
    assert_int_equal(notes.n, 1);
    assert_str(notes.v[0].reason, "DNSConfigForming");
    assert_str(notes.v[0].message,
               "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
               "nameserver line is: 10.0.0.10 1.1.1.1 2.2.2.2");

    /* Too many, one that is too long, and too much in all. */
    for (size_t i = 0; i < 40; i++)
        searches[i] = dv_str_printf(arena, "%zu." X50, i);
    searches[1] = dv_str_printf(arena, X50 X50 X50 X50 X50 "xxxx");
    node.resolver.searches = (struct dv_strs){searches, 40};
    pod = test_pod("dnsPolicy: Default, " C);
    memset(&notes, 0, sizeof(notes));
    dns = make(&node, &pod, &notes)->dns_config;
    assert_int_equal(dns->n_searches, 31);
    assert_string_equal(dns->searches[1], "2." X50);
    assert_int_equal(notes.n, 1);

    for (size_t i = 0; i < 40; i++)
        searches[i] = dv_str_printf(arena, "%zu." X50 X50 X50, i);
    memset(&notes, 0, sizeof(notes));
    dns = make(&node, &pod, &notes)->dns_config;
    assert_int_equal(dns->n_searches, 13);
    assert_int_equal(notes.n, 1);
}

static void a_node_without_dns_says_so_when_it_is_asked_for(void **state)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(C);
    struct dv_workload_pod asking =
        test_pod("hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, " C);
    struct dv_config_notes notes = {0};
    const CriV1__DNSConfig *dns;

    (void)state;
    node.cluster_dns.n = 0;
    dns = make(&node, &pod, &notes)->dns_config;
    assert_string_equal(test_join(dns->servers, dns->n_servers), "192.0.2.53");
    assert_int_equal(notes.n, 0);
    dns = make(&node, &asking, &notes)->dns_config;
    assert_string_equal(test_join(dns->servers, dns->n_servers), "192.0.2.53");
    assert_int_equal(notes.n, 1);
    assert_str(notes.v[0].reason, "MissingClusterDNS");
    assert_str(notes.v[0].message,
               "pod: \"p_ns(" TEST_UID ")\". kubelet does not have ClusterDNS IP configured and "
               "cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" "
               "policy.");
    node.has_resolver = false;
    dns = make(&node, &pod, &notes)->dns_config;
    assert_string_equal(test_join(dns->servers, dns->n_servers), "127.0.0.1");
    assert_string_equal(test_join(dns->searches, dns->n_searches), ".");
}

static void ports_are_told_once(void **state)
{
    CriV1__PodSandboxConfig *config = make_plain(
        "initContainers: [{name: i, image: x, ports: [{containerPort: 1}]}], containers: [{name: "
        "c, "
        "image: x, ports: [{containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}, {containerPort: "
        "80, hostPort: 8080, hostIP: 127.0.0.1}, {containerPort: 53, protocol: UDP, name: dns}, "
        "{containerPort: 54, name: dns}]}, {name: d, image: x, ports: [{containerPort: 9, "
        "protocol: "
        "SCTP}]}]");

    (void)state;
    assert_int_equal(config->n_port_mappings, 3);
    assert_int_equal(config->port_mappings[0]->host_port, 8080);
    assert_string_equal(config->port_mappings[0]->host_ip, "127.0.0.1");
    assert_int_equal(config->port_mappings[1]->protocol, CRI_V1__PROTOCOL__UDP);
    assert_int_equal(config->port_mappings[1]->container_port, 53);
    assert_int_equal(config->port_mappings[2]->protocol, CRI_V1__PROTOCOL__SCTP);
}

static void the_pods_context_is_the_sandboxes(void **state)
{
    CriV1__PodSandboxConfig *config = make_plain(
        "securityContext: {runAsUser: 7, runAsGroup: 8, fsGroup: 9, supplementalGroups: [10, 11], "
        "supplementalGroupsPolicy: Strict, seLinuxOptions: {level: s0}, sysctls: [{name: "
        "net/ipv4/conf/eth0.1/x, value: '1'}, {name: kernel.sem, value: '2'}]}, containers: "
        "[{name: "
        "c, image: x, securityContext: {privileged: true}}]");
    const CriV1__LinuxSandboxSecurityContext *context = config->linux->security_context;

    (void)state;
    assert_true(context->privileged);
    assert_int_equal(context->run_as_user->value, 7);
    assert_int_equal(context->run_as_group->value, 8);
    assert_int_equal(context->n_supplemental_groups, 3);
    assert_int_equal(context->supplemental_groups[0], 9);
    assert_int_equal(context->supplemental_groups[2], 11);
    assert_int_equal(context->supplemental_groups_policy,
                     CRI_V1__SUPPLEMENTAL_GROUPS_POLICY__Strict);
    assert_string_equal(context->selinux_options->level, "s0");
    assert_int_equal(config->linux->n_sysctls, 2);
    assert_string_equal(config->linux->sysctls[0]->key, "kernel.sem");
    assert_string_equal(config->linux->sysctls[1]->key, "net.ipv4.conf.eth0/1.x");
}

#define BURSTABLE "containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]"
#define GUARANTEED "containers: [{name: c, image: x, resources: {limits: {cpu: 1, memory: 1Gi}}}]"

static void cgroups_have_names(void **state)
{
    static const struct {
        const char *spec;
        bool is_systemd;
        const char *want;
    } cases[] = {
        {C,          false, "/kubepods/besteffort/pod" TEST_UID                  },
        {BURSTABLE,  false, "/kubepods/burstable/pod" TEST_UID                   },
        {GUARANTEED, false, "/kubepods/pod" TEST_UID                             },
        {C,          true,
         "/kubepods.slice/kubepods-besteffort.slice/"
         "kubepods-besteffort-pod01234567_89ab_cdef_0123_456789abcdef.slice"     },
        {BURSTABLE,  true,
         "/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice"      },
        {GUARANTEED, true,
         "/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_workload_node node = test_node();
        struct dv_workload_pod pod = test_pod(cases[i].spec);

        node.has_systemd_cgroups = cases[i].is_systemd;
        assert_string_equal(make(&node, &pod, NULL)->linux->cgroup_parent, cases[i].want);
        node.has_pod_cgroups = false;
        assert_str(dv_config_cgroup_parent(&node, &pod, arena), "");
    }
}

static void the_name_of_a_link_to_a_log_is_cut(void **state)
{
    char *pod = dv_arena_alloc(arena, 253, 1);
    dv_str name;

    (void)state;
    assert_str(dv_workload_log_link(DV_STR("p"), DV_STR("ns"), DV_STR("c"), DV_STR("id"), arena),
               "p_ns_c-id.log");
    memset(pod, 'x', 253);
    name = dv_workload_log_link((dv_str){pod, 253}, DV_STR("ns"), DV_STR("c"), DV_STR("id"), arena);
    assert_int_equal(name.n, 255);
    assert_true(dv_str_ends_with(name, DV_STR("xx.log")));
}

static void a_pods_cgroup_is_limited_when_all_of_it_is(void **state)
{
    static const struct {
        const char *spec;
        uint64_t shares;
        int64_t quota_us;
        int64_t memory;
    } cases[] = {
        {C,                                                                                  2,    0,      0      },
        {GUARANTEED,                                                                         1024, 100000, 1 << 30},
        {BURSTABLE,                                                                          1024, 0,      0      },
        {"containers: [{name: c, image: x, resources: {requests: {cpu: 1}, limits: {cpu: 2, "
         "memory: "
         "1Mi}}}, {name: d, image: x, resources: {limits: {cpu: 1}}}]",             2048, 300000, 0      },
        {"overhead: {cpu: 250m, memory: 1Mi}, containers: [{name: c, image: x, resources: "
         "{requests:"
         " {cpu: 1}, limits: {cpu: 1, memory: 1Mi}}}]",                             1280, 125000, 2 << 20},
        {"resources: {limits: {cpu: 4, memory: 1Gi}, requests: {cpu: 2}}, " C,               2048, 400000,
         1 << 30                                                                                                  },
 /* An init container that needs more than all others counts, and sidecars always. */
        {"initContainers: [{name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: "
         "1}}}, {name: i, image: x, resources: {requests: {cpu: 4}}}], " BURSTABLE,
         5120,                                                                                     0,      0      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_workload_pod pod = test_pod(cases[i].spec);
        struct dv_config_cgroup cgroup;

        dv_config_cgroup(&pod, arena, &cgroup);
        assert_int_equal(cgroup.cpu_shares, cases[i].shares);
        assert_int_equal(cgroup.cpu_quota_us, cases[i].quota_us);
        assert_int_equal(cgroup.cpu_period_us, 100000);
        assert_int_equal(cgroup.memory_bytes, cases[i].memory);
    }
}

static void the_hosts_file_has_addresses_and_aliases(void **state)
{
    static const char managed[] = "# Kubernetes-managed hosts file.\n"
                                  "127.0.0.1\tlocalhost\n"
                                  "::1\tlocalhost ip6-localhost ip6-loopback\n"
                                  "fe00::0\tip6-localnet\n"
                                  "fe00::0\tip6-mcastprefix\n"
                                  "fe00::1\tip6-allnodes\n"
                                  "fe00::2\tip6-allrouters\n";
    static const struct {
        const char *spec;
        bool has_managed;
        const char *rest;
    } cases[] = {
        {C,                                                                                      true,  "10.1.0.5\tp\n"                                                              },
        {"hostname: h, subdomain: s, " C,                                                        true,  "10.1.0.5\th.s.ns.svc.cluster.local\th\n"                                    },
        {"hostAliases: [{ip: 1.2.3.4, hostnames: [a, b]}, {ip: 'fd00::1', hostnames: [c]}], " C,
         true,                                                                                          "10.1.0.5\tp\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\nfd00::1\tc\n"},
        {"hostNetwork: true, hostAliases: [{ip: 1.2.3.4, hostnames: [a]}], " C,                  false,
         "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n"
         "# Entries added by HostAliases.\n1.2.3.4\ta\n"                                                                                                                             },
    };
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod;
    dv_str text;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        pod = test_pod(cases[i].spec);
        assert_true(dv_config_hosts(&node, &pod, arena, &text));
        assert_str(
            text,
            dv_str_printf(arena, "%s%s", cases[i].has_managed ? managed : "", cases[i].rest).p);
    }
    pod = test_pod(C);
    pod.ips.n = 0;
    assert_false(dv_config_hosts(&node, &pod, arena, &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_plain_pod_has_its_names),
        doc_test(namespaces_follow_the_pod),
        doc_test(hostnames_are_cut_and_qualified),
        doc_test(refuses_a_name_that_the_kernel_does_not_take),
        doc_test(dns_follows_the_policy),
        doc_test(dns_is_cut_to_what_resolvers_take),
        doc_test(a_node_without_dns_says_so_when_it_is_asked_for),
        doc_test(ports_are_told_once),
        doc_test(the_pods_context_is_the_sandboxes),
        doc_test(cgroups_have_names),
        doc_test(the_name_of_a_link_to_a_log_is_cut),
        doc_test(a_pods_cgroup_is_limited_when_all_of_it_is),
        doc_test(the_hosts_file_has_addresses_and_aliases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
