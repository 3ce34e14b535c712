/* ui.h - the page that shows the node, whose files are a part of the program. The files are public;
 * the page asks for what it shows with a token. */
#ifndef DV_SERVE_UI_H
#define DV_SERVE_UI_H

#include <stdbool.h>

struct dv_rest_call;
struct dv_rest_request;

/* Answers requests for /ui. False: the request is for something else. */
bool dv_ui_handle(struct dv_rest_call *call, const struct dv_rest_request *request);

#endif
