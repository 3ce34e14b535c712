/* ui.h - the page that shows the node: files that are a part of the program.
 *
 * They are everyone's; what they show is asked for with a token, by the page. */
#ifndef DV_SERVE_UI_H
#define DV_SERVE_UI_H

#include <stdbool.h>

struct dv_rest_call;
struct dv_rest_request;

/* Answers what is for /ui. False: it is for something else. */
bool dv_ui_handle(struct dv_rest_call *call, const struct dv_rest_request *request);

#endif
