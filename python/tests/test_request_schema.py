"""The schema of requests for data, docs/schema/data-request.xsd, by lxml: on the cases that the reader is held to as well."""

import tomllib

import pytest
from conftest import ROOT
from lxml import etree

CASES = tomllib.loads((ROOT / "vectors/requests/cases.toml").read_text(encoding="utf-8"))
# As a careful program reads the requests of others: no file and no network.
PARSER = etree.XMLParser(resolve_entities="internal", no_network=True)


@pytest.fixture(scope="module")
def schema():
    return etree.XMLSchema(etree.parse(ROOT / "docs/schema/data-request.xsd"))


def refusal(schema, xml):
    """Why lxml refuses a request: that it is not well-formed, or the schema. None if it accepts it."""
    try:
        schema.assertValid(etree.fromstring(xml.encode(), PARSER))
    except (etree.XMLSyntaxError, etree.DocumentInvalid) as error:
        return error
    return None


@pytest.mark.parametrize("case", CASES["good"], ids=lambda case: case["name"])
def test_good_requests_are_valid(schema, case):
    assert refusal(schema, case["xml"]) is None


@pytest.mark.parametrize("case", CASES["broken"], ids=lambda case: case["name"])
def test_broken_requests_are_invalid(schema, case):
    accepted = refusal(schema, case["xml"]) is None
    assert accepted == case.get("schema_accepts", False)


def test_the_schema_itself_refuses_many(schema):
    """Not only requests that are no XML."""
    reasons = [refusal(schema, case["xml"]) for case in CASES["broken"]]
    assert sum(isinstance(reason, etree.DocumentInvalid) for reason in reasons) >= 50


def test_the_request_of_the_paper_is_valid(schema):
    paper = (
        '<message type="3" priority="0"><service name="DataAccess"/><db_name value="TaqDaily"/>'
        '<universe_file name="spx500.txt" location="/home/user/"/><msg_types value="Trade,BBO"/>'
        '<time_range from="20141001 00:00:00.000" to="20150101 00:00:00.000"/></message>'
    )
    assert refusal(schema, paper) is None
    assert CASES["good"][0]["xml"] == paper


def test_the_examples_of_the_page_are_valid(schema):
    page = (ROOT / "docs/data-request.md").read_text(encoding="utf-8")
    examples = [part.split("```")[0] for part in page.split("```xml\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        assert refusal(schema, example) is None


def test_all_of_the_schema_is_documented():
    """The elements, and the bounds with what they include."""
    schema = etree.parse(ROOT / "docs/schema/data-request.xsd")
    xs = {"xs": "http://www.w3.org/2001/XMLSchema"}
    nodes = [node for kind in ("element", "complexType") for node in schema.findall(f"xs:{kind}", xs)]
    nodes += schema.findall(".//xs:attribute[@type='time']", xs)
    assert len(nodes) == 10
    for node in nodes:
        assert node.findtext("xs:annotation/xs:documentation", namespaces=xs), node.get("name")
