/* credentials.h - what a client shows to say who it is: a bearer token, or a certificate. */
#ifndef DV_SERVE_CREDENTIALS_H
#define DV_SERVE_CREDENTIALS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_user_info;
struct dv_err;
struct dv_rest_call;
struct dv_rest_request;

/* Whether the request has a bearer token, which is borrowed from it. */
bool dv_credentials_bearer(const struct dv_rest_request *request, dv_str *token);
/* Makes the user that the client's certificate names, in the call's arena. Fails as
 * dv_rest_call_identity does. */
DV_CHECKED bool dv_credentials_certificate(struct dv_rest_call *call, struct dv_api_user_info *user,
                                           struct dv_err *err);

#endif
