use super::*;
use tapeloop::features::FeatureConfig;
use tapeloop::features::TableName;

fn parse(text: &str) -> Result<Condition> {
    let mut features = FeatureConfig::default();
    features.reals = tapeloop::features::Reals::F16;
    let mut columns = features.columns(TableName::Residues);
    columns.retain(|decl| ["rsa", "cn_ca_8", "iface", "ss8"].contains(&&*decl.name));
    assert_eq!(columns.len(), 4);
    let precise = ColumnDecl {
        name: "plddt".to_owned(),
        kind: ColumnKind::Real,
        ..columns[0].clone()
    };
    columns.push(precise);
    Condition::parse(text, &columns, OptionalColumns::NONE)
}

/// The condition with a pair of parentheses around each part, and its columns by index.
fn shown(node: &ConditionNode) -> String {
    let join = |nodes: &[ConditionNode], word: &str| {
        let parts: Vec<String> = nodes.iter().map(shown).collect();
        format!("({})", parts.join(word))
    };
    let value = |literal: &Literal| match literal {
        Literal::Number(number) => number.to_string(),
        Literal::Text(text) => format!("{text:?}"),
        Literal::Flag(flag) => flag.to_string(),
    };
    match node {
        ConditionNode::All(nodes) => join(nodes, " and "),
        ConditionNode::Any(nodes) => join(nodes, " or "),
        ConditionNode::Not(node) => format!("(not {})", shown(node)),
        ConditionNode::Test(column, Test::IsNull) => format!("{column} null"),
        ConditionNode::Test(column, Test::Less(literal)) => format!("{column}<{}", value(literal)),
        ConditionNode::Test(column, Test::Greater(literal)) => {
            format!("{column}>{}", value(literal))
        }
        ConditionNode::Test(column, Test::Contains(part)) => format!("{column} has {part:?}"),
        ConditionNode::Test(column, Test::OneOf(literals)) => {
            let values: Vec<String> = literals.iter().map(value).collect();
            format!("{column}={}", values.join("|"))
        }
    }
}

#[track_caller]
fn is(text: &str, expected: &str) {
    assert_eq!(shown(&parse(text).unwrap().root), expected, "{text}");
}

/// The condition is refused at this character, by a message with a fix that has these parts in their order,
/// which " .. " separates.
#[track_caller]
fn refused(text: &str, place: usize, said: &str) {
    let error = parse(text).unwrap_err();
    let fix = error.fix_text().expect("each error has a fix");
    let all = format!("{}; {fix}", error.message());
    assert!(all.starts_with(&format!("character {place}: ")), "{all}");
    let mut rest = &*all;
    for part in said.split(" .. ") {
        let after = rest.split_once(part).map(|(_, after)| after);
        rest = after.unwrap_or_else(|| panic!("{text}: {all:?} lacks {part:?}"));
    }
}

#[test]
fn operators_are_tests_and_their_opposites() {
    is("plddt == 70", "0=70");
    is("plddt != 70", "(not 0=70)");
    is("plddt<-70.5", "0<-70.5");
    is("plddt > +7e1", "0>70");
    is("plddt <= 70", "(not 0>70)");
    is("plddt >= .5", "(not 0<0.5)");
    is("plddt is null", "0 null");
    is("plddt IS NOT NULL", "(not 0 null)");
    is("chain in ('A', 'B')", "0=\"A\"|\"B\"");
    is("cn_ca_8 not in (1,-2)", "(not 0=1|-2)");
    is("chain > 'A'", "0>\"A\"");
    is("flags contains 'cb_built'", "0 has \"cb_built\"");
    is("flags not contains 'cb_built'", "(not 0 has \"cb_built\")");
    refused("plddt contains '7'", 7, "texts .. plddt");
    refused("flags contains 7", 16, "flags .. texts");
}

#[test]
fn and_binds_more_than_or_and_not_most() {
    is(
        "iface and rsa>1 or rsa<2 or not aa=='G' and iface",
        "((0=true and 1>1) or 1<2 or ((not 2=\"G\") and 0=true))",
    );
    is(
        "iface AND (rsa>1 Or rsa<2) and not (not iface)",
        "(0=true and (1>1 or 1<2) and (not (not 0=true)))",
    );
    is("not iface == False", "(not 0=false)");
    is("not iface is null", "(not 0 null)");
}

#[test]
fn columns_have_the_names_of_annotations_too_and_are_listed_once() {
    let condition = parse("chain == 'A' and residue < 9 and auth_asym_id != 'B'").unwrap();
    assert_eq!(condition.columns, ["auth_asym_id", "auth_seq_id"]);
}

#[test]
fn a_quote_in_a_text_is_doubled() {
    is("chain == 'it''s'", r#"0="it's""#);
    is(r#"chain == "it's""#, r#"0="it's""#);
    is(r#"chain == """""#, r#"0="\"""#);
    is("chain == ''", r#"0="""#);
}

#[test]
fn numbers_are_rounded_as_the_columns_values_are() {
    let number = |text: &str| match parse(text).unwrap().root {
        ConditionNode::Test(_, Test::OneOf(literals)) => literals[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(number("plddt == 0.1"), Literal::Number(f64::from(0.1_f32)));
    let half = half::f16::from_f32(0.1).to_f64();
    assert_eq!(number("rsa == 0.1"), Literal::Number(half));
    assert_eq!(number("cn_ca_8 == 0.1"), Literal::Number(0.1));
}

#[test]
fn mistakes_are_named_with_their_place_and_what_to_write() {
    refused("", 1, "column .. the end");
    refused("pldd >= 70", 1, "`pldd` .. did you mean `plddt`?");
    refused("not hse_a_up > 3", 5, "`features` .. `hse_a`");
    refused("ligand_dmin < 4", 1, "set ligands = \"keep\"");
    // A column of another table.
    refused("co_relative > 1", 1, "`features`");
    refused("é", 1, "`é`");
    refused("chain == 'é' and x == 1", 18, "`x`");
    refused("chain = 'A'", 7, "==");
    refused("iface && iface", 7, "write and");
    refused("iface || iface", 7, "write or");
    refused("!iface", 1, "write not");
    refused("plddt >= '70'", 10, "plddt .. numbers .. `'70'`");
    refused("chain == A", 10, "auth_asym_id .. `A` .. quotes");
    refused("chain in ('A', 7)", 16, "auth_asym_id .. texts .. `7`");
    refused("iface == 1", 10, "iface .. true and false .. `1`");
    refused("iface < true", 7, "order .. iface");
    refused("plddt and iface", 7, "comparison of plddt .. `and`");
    refused("plddt >=", 9, "plddt .. numbers .. the end");
    refused("plddt >= 1x", 10, "plddt .. `1x`");
    refused("plddt >= 1e999", 10, "plddt .. `1e999`");
    refused("plddt >= inf", 10, "plddt .. `inf`");
    refused("70 <= plddt", 1, "column .. `70`");
    refused("plddt >= 70 iface", 13, "`and`, `or` .. `iface`");
    refused("(iface", 7, "`)` .. the end");
    refused("iface)", 6, "`and`, `or` .. `)`");
    refused("chain in 'A'", 10, "`(`");
    refused("chain in ()", 11, "auth_asym_id .. `)`");
    refused("chain is 'A'", 10, "`null`");
    refused("chain not 'A'", 11, "`in`");
    refused("chain == 'A", 10, "without an end");
    refused("iface and", 10, "column .. the end");
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let nested = |depth: usize| format!("{}iface{}", "(".repeat(depth), ")".repeat(depth));
    is(&nested(64), "0=true");
    refused(&nested(65), 65, "64");
    refused(&"not ".repeat(100_000), 257, "64");
    // Parts in a row are not inside each other.
    let many = vec!["iface"; 100_000].join(" and ");
    assert!(parse(&many).is_ok());
}
