/* curl_calls.h - libcurl, loaded when the first client is opened.
 *
 * It brings two dozen libraries along (for LDAP, Kerberos, SSH, ...), and most runs of davit and
 * many davitd never open a client: linked, all of them would be loaded at every start. Who includes
 * this calls libcurl's functions by their own names, through the table. */
#ifndef DV_REST_CURL_CALLS_H
#define DV_REST_CURL_CALLS_H

#include <stdbool.h>

#include <curl/curl.h> /* IWYU pragma: export */

#include "base/defs.h"

struct dv_err;

/* These are macros around the functions in libcurl's header, which check types that our compilers
 * cannot see through a pointer. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

/* What is called of it. */
#define DV_CURL_CALLS(X)                                                                           \
    X(easy_cleanup)                                                                                \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_nextheader)                                                                             \
    X(easy_pause)                                                                                  \
    X(easy_recv)                                                                                   \
    X(easy_send)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(free)                                                                                        \
    X(global_cleanup)                                                                              \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_assign)                                                                                \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(multi_setopt)                                                                                \
    X(multi_socket_action)                                                                         \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(url)                                                                                         \
    X(url_cleanup)                                                                                 \
    X(url_get)                                                                                     \
    X(url_set)

#define DV_CURL_MEMBER(name) __typeof__(curl_##name) *name##_;
struct dv_curl_calls {
    DV_CURL_CALLS(DV_CURL_MEMBER)
};
#undef DV_CURL_MEMBER

/* Set once, by the first load, and the same for the whole process. */
extern struct dv_curl_calls dv_curl;

/* Loads libcurl; does nothing when that is done. On the loop's thread. DV_FAILED_PRECONDITION: it
 * is not on this machine. */
DV_CHECKED bool dv_curl_load(struct dv_err *err);

#define curl_easy_cleanup dv_curl.easy_cleanup_
#define curl_easy_getinfo dv_curl.easy_getinfo_
#define curl_easy_init dv_curl.easy_init_
#define curl_easy_nextheader dv_curl.easy_nextheader_
#define curl_easy_pause dv_curl.easy_pause_
#define curl_easy_recv dv_curl.easy_recv_
#define curl_easy_send dv_curl.easy_send_
#define curl_easy_setopt dv_curl.easy_setopt_
#define curl_easy_strerror dv_curl.easy_strerror_
#define curl_free dv_curl.free_
#define curl_global_cleanup dv_curl.global_cleanup_
#define curl_global_init dv_curl.global_init_
#define curl_multi_add_handle dv_curl.multi_add_handle_
#define curl_multi_assign dv_curl.multi_assign_
#define curl_multi_cleanup dv_curl.multi_cleanup_
#define curl_multi_info_read dv_curl.multi_info_read_
#define curl_multi_init dv_curl.multi_init_
#define curl_multi_remove_handle dv_curl.multi_remove_handle_
#define curl_multi_setopt dv_curl.multi_setopt_
#define curl_multi_socket_action dv_curl.multi_socket_action_
#define curl_slist_append dv_curl.slist_append_
#define curl_slist_free_all dv_curl.slist_free_all_
#define curl_url dv_curl.url_
#define curl_url_cleanup dv_curl.url_cleanup_
#define curl_url_get dv_curl.url_get_
#define curl_url_set dv_curl.url_set_

#endif
