"""In which forms answers come, and how long they may take."""

from servers import MAPS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_the_end_of_the_beginning_is_a_row_of_a_table(api):
    """Where kubectl finds the annotation."""
    api.must("POST", MAPS, {"metadata": {"name": "t1"}})
    watch = api.watch(f"{MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                      "&allowWatchBookmarks=true", Accept=TABLE)
    table = watch.until(lambda event: event["type"] == "BOOKMARK")[-1]["object"]
    watch.close()
    assert table["kind"] == "Table" and len(table["rows"]) == 1, table
    meta = table["rows"][0]["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}, table
    assert meta["resourceVersion"] == table["metadata"]["resourceVersion"]


def test_what_is_no_list_of_objects_has_no_table(api):
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    api.refused(406, "POST", path, review, Accept=TABLE)
    assert api.must("POST", path, review, Accept=f"{TABLE},application/json")["status"]["allowed"]
    api.refused(406, "GET", "/api/v1", Accept=TABLE)


def test_a_timeout_is_a_duration(api):
    said = api.refused(400, "GET", f"{MAPS}?timeout=invalid")
    assert said["message"] == ("invalid timeout specified in the request URL - "
                               'time: invalid duration "invalid"')
    assert api.refused(400, "GET", f"{MAPS}?timeout=5")["message"].endswith(
        'time: missing unit in duration "5"')
    api.must("GET", f"{MAPS}?timeout=5s")
