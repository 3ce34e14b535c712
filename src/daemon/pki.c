#include "daemon/pki.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/remote.h"
#include "rest/rest.h"
#include "rest/signing_key.h"

#define PEM_BYTES_MAX 65536u
#define KUBECONFIG_BYTES_MAX (1u << 20)
#define CA_DAYS 3650u
#define SERVER_DAYS 365u
/* A CA that ends within a year is made anew, so that everybody who was given it has time to get the
 * next one. */
#define CA_LEFT_NS (UINT64_C(365) * 24 * 3600 * 1000000000)
#define HOST_NAME_BYTES 256

/* ---- the CA ---- */

/* Says what to do about files that are there and cannot be used. They are not replaced: clients
 * that were given the certificate would not know the new one. */
#define WHAT_TO_DO                                                                                 \
    "restore it from a backup, or move ca.crt and ca.key away, and a new CA is made (kubeconfigs " \
    "have to be written again then)"

/* Reads a file; *is_there is false when it is missing, which is no failure. */
static bool read_pem(dv_str path, struct dv_arena *arena, dv_str *text, bool *is_there,
                     struct dv_err *err)
{
    *is_there = dv_file_read(path, PEM_BYTES_MAX, arena, text, err);
    return *is_there || err->code == DV_NOT_FOUND;
}

/* Reads the CA; *is_good: it is there, and is valid for long enough. */
static bool read_ca(dv_str cert_path, dv_str key_path, uint64_t now_ns, struct dv_arena *arena,
                    struct dv_rest_cert *ca, bool *is_good, struct dv_err *err)
{
    const struct dv_rest_cert_request probe = {
        .name = DV_STR("davitd"), .now_ns = now_ns, .valid_days = 1};
    struct dv_rest_cert made;
    bool has_cert;
    bool has_key;
    uint64_t end_ns;

    *is_good = false;
    if (!read_pem(cert_path, arena, &ca->cert, &has_cert, err) ||
        !read_pem(key_path, arena, &ca->key, &has_key, err))
        return false;
    if (!has_cert)
        return true; /* the key alone was left by a start that was cut off */
    if (!dv_rest_cert_end(ca->cert, &end_ns, err))
        return dv_wrap(err, "%.*s cannot be read; " WHAT_TO_DO, DV_FMT(cert_path));
    if (!has_key)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%.*s is missing, but not its certificate; " WHAT_TO_DO, DV_FMT(key_path));
    if (!dv_rest_cert_make_server(ca, &probe, arena, &made, err))
        return dv_wrap(err, "%.*s cannot be used; " WHAT_TO_DO, DV_FMT(key_path));
    *is_good = end_ns > now_ns + CA_LEFT_NS;
    return true;
}

static bool make_dir(dv_str dir, struct dv_arena *arena, struct dv_err *err)
{
    return mkdir(dv_str_to_c(dir, arena), 0700) == 0 || errno == EEXIST ||
           dv_fail_errno(err, errno, "make %.*s", DV_FMT(dir));
}

bool dv_pki_load_ca(dv_str state_dir, uint64_t now_ns, struct dv_arena *arena,
                    struct dv_rest_cert *ca, struct dv_err *err)
{
    dv_str dir = dv_str_printf(arena, "%.*s/pki", DV_FMT(state_dir));
    dv_str cert_path = dv_str_printf(arena, "%.*s/ca.crt", DV_FMT(dir));
    dv_str key_path = dv_str_printf(arena, "%.*s/ca.key", DV_FMT(dir));
    struct dv_rest_cert_request request = {
        .name = DV_STR("davit CA"), .now_ns = now_ns, .valid_days = CA_DAYS};
    bool is_good;

    if (!make_dir(dir, arena, err) ||
        !read_ca(cert_path, key_path, now_ns, arena, ca, &is_good, err))
        return false;
    if (is_good)
        return true;
    if (!dv_rest_cert_make_ca(&request, arena, ca, err))
        return dv_wrap(err, "make a CA");
    dv_log(DV_LOG_INFO, "daemon: made a CA", DV_F_STR("file", cert_path));
    /* The key is written first: a certificate without its key would be taken for a good CA. */
    return dv_file_replace(key_path, ca->key, 0600, err) &&
           dv_file_replace(cert_path, ca->cert, 0644, err);
}

/* ---- the keys of tokens ---- */

#define TOKEN_KEY "tokens.key"

static int is_older_key(const struct dirent *entry)
{
    dv_str name = dv_str_from_c(entry->d_name);

    return dv_str_starts_with(name, DV_STR("tokens-")) &&
           (dv_str_ends_with(name, DV_STR(".key")) || dv_str_ends_with(name, DV_STR(".pub")));
}

struct pems {
    DV_VEC(dv_str) v;
};

/* Adds the text of a key file, and checks that it is a key, so that an error names the file. */
static bool add_key(dv_str path, struct dv_arena *arena, struct pems *pems, struct dv_err *err)
{
    struct dv_signing_key *key;
    dv_str pem;

    if (!dv_file_read(path, PEM_BYTES_MAX, arena, &pem, err))
        return false;
    key = dv_signing_key_new(pem, err);
    if (!key)
        return dv_wrap(
            err,
            "%.*s cannot be used; restore it from a backup, or move it away, and what it "
            "has signed is refused",
            DV_FMT(path));
    dv_signing_key_free(key);
    *dv_vec_add_in(&pems->v, arena) = pem;
    return true;
}

/* Makes the key that signs when there is none. */
static bool make_token_key(dv_str path, struct dv_arena *arena, struct dv_err *err)
{
    dv_str pem;

    if (access(dv_str_to_c(path, arena), F_OK) == 0)
        return true;
    if (errno != ENOENT)
        return dv_fail_errno(err, errno, "%.*s", DV_FMT(path));
    if (!dv_signing_key_make(arena, &pem, err) || !dv_file_replace(path, pem, 0600, err))
        return false;
    dv_log(DV_LOG_INFO, "daemon: made a key for tokens", DV_F_STR("file", path));
    return true;
}

bool dv_pki_load_token_keys(dv_str state_dir, struct dv_arena *arena, dv_str **pems, size_t *n_pems,
                            struct dv_err *err)
{
    dv_str dir = dv_str_printf(arena, "%.*s/pki", DV_FMT(state_dir));
    dv_str path = dv_str_printf(arena, "%.*s/" TOKEN_KEY, DV_FMT(dir));
    struct dirent **names = NULL;
    struct pems found = {0};
    bool is_good;
    int n;

    if (!make_dir(dir, arena, err) || !make_token_key(path, arena, err) ||
        !add_key(path, arena, &found, err))
        return false;
    n = scandir(dv_str_to_c(dir, arena), &names, is_older_key, alphasort);
    if (n < 0)
        return dv_fail_errno(err, errno, "%.*s", DV_FMT(dir));
    is_good = true;
    for (int i = 0; i < n; i++) {
        is_good = is_good && add_key(dv_str_printf(arena, "%.*s/%s", DV_FMT(dir), names[i]->d_name),
                                     arena, &found, err);
        free(names[i]);
    }
    free(names);
    *pems = found.v.v;
    *n_pems = found.v.n;
    return is_good;
}

/* ---- the server's certificate ---- */

struct hosts {
    DV_VEC(dv_str) v;
};

static void add_host(struct hosts *hosts, dv_str host, struct dv_arena *arena)
{
    for (size_t i = 0; i < hosts->v.n; i++)
        if (dv_str_eq(hosts->v.v[i], host))
            return;
    if (host.n)
        *dv_vec_add_in(&hosts->v, arena) = dv_str_copy(host, arena);
}

/* Adds every address of this machine, because other nodes may use any of them. */
static void add_addresses(struct hosts *hosts, struct dv_arena *arena)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0)
        return; /* the loopback's addresses still work */
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        char text[NI_MAXHOST];
        dv_str host;
        socklen_t n;

        if (!at->ifa_addr ||
            (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
            continue;
        n = at->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                               : sizeof(struct sockaddr_in6);
        if (getnameinfo(at->ifa_addr, n, text, sizeof(text), NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        host = dv_str_from_c(text);
        add_host(hosts, dv_str_slice(host, 0, dv_str_find_char(host, '%')), arena);
    }
    freeifaddrs(all);
}

/* Returns the host of an address: "::1" for "[::1]:6443". */
dv_str dv_pki_address(dv_str listen)
{
    size_t n = listen.n;

    while (n > 0 && listen.p[n - 1] != ':')
        n--;
    listen = dv_str_slice(listen, 0, n > 0 ? n - 1 : 0);
    if (listen.n > 1 && listen.p[0] == '[')
        listen = dv_str_slice(listen, 1, listen.n - 1);
    return listen;
}

static bool is_all(dv_str host)
{
    return dv_str_eq(host, DV_STR("0.0.0.0")) || dv_str_eq(host, DV_STR("::"));
}

dv_str dv_pki_reached_at(dv_str listen, struct dv_arena *arena)
{
    struct in6_addr address;
    struct hosts hosts = {0};
    dv_str host = dv_pki_address(listen);
    const char *text = dv_str_to_c(host, arena);

    if (!is_all(host) &&
        (inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1))
        return dv_str_copy(host, arena);
    if (is_all(host))
        add_addresses(&hosts, arena);
    for (size_t i = 0; i < hosts.v.n; i++)
        if (!dv_str_starts_with(hosts.v.v[i], DV_STR("127.")) &&
            dv_str_find_char(hosts.v.v[i], ':') == hosts.v.v[i].n)
            return hosts.v.v[i];
    return DV_STR("127.0.0.1");
}

bool dv_pki_make_server(const struct dv_rest_cert *ca, dv_str node_name, dv_str listen,
                        uint64_t now_ns, struct dv_arena *arena, struct dv_rest_cert *cert,
                        struct dv_err *err)
{
    static const dv_str always[] = {
        DV_STR_INIT("localhost"),
        DV_STR_INIT("127.0.0.1"),
        DV_STR_INIT("::1"),
        DV_STR_INIT("kubernetes"),
        DV_STR_INIT("kubernetes.default"),
        DV_STR_INIT("kubernetes.default.svc"),
    };
    struct dv_rest_cert_request request = {
        .name = DV_STR("davitd"), .now_ns = now_ns, .valid_days = SERVER_DAYS};
    struct hosts hosts = {0};
    dv_str host = dv_pki_address(listen);
    char name[HOST_NAME_BYTES] = "";

    for (size_t i = 0; i < DV_COUNT(always); i++)
        add_host(&hosts, always[i], arena);
    if (gethostname(name, sizeof(name) - 1) == 0)
        add_host(&hosts, dv_str_from_c(name), arena);
    add_host(&hosts, node_name, arena);
    if (is_all(host))
        add_addresses(&hosts, arena);
    else
        add_host(&hosts, host, arena);
    request.hosts = hosts.v.v;
    request.n_hosts = hosts.v.n;
    if (!dv_rest_cert_make_server(ca, &request, arena, cert, err))
        return dv_wrap(err, "make the server's certificate");
    return true;
}

/* ---- kubeconfig ---- */

dv_str dv_pki_read_token(dv_str path, struct dv_arena *arena)
{
    struct dv_kubeconfig config;
    struct dv_err err;

    return dv_kubeconfig_load(path, DV_STR_NONE, arena, &config, &err) ? config.token : DV_STR_NONE;
}

dv_str dv_pki_print_kubeconfig(dv_str server, dv_str ca, dv_str user, dv_str token,
                               struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, KUBECONFIG_BYTES_MAX);
    dv_buf_add_c(&buf, "apiVersion: v1\nkind: Config\nclusters:\n- name: davit\n  cluster:\n");
    if (ca.n) {
        dv_buf_add_c(&buf, "    certificate-authority-data: ");
        dv_base64_encode(ca, &buf);
        dv_buf_add_char(&buf, '\n');
    }
    dv_buf_printf(&buf, "    server: %.*s\n", DV_FMT(server));
    dv_buf_printf(&buf, "users:\n- name: %.*s\n  user:\n    token: %.*s\n", DV_FMT(user),
                  DV_FMT(token));
    dv_buf_printf(&buf,
                  "contexts:\n- name: davit\n  context:\n    cluster: davit\n    user: %.*s\n"
                  "current-context: davit\n",
                  DV_FMT(user));
    return dv_str_copy(dv_buf_str(&buf), arena);
}
