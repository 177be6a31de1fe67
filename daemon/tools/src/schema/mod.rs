//! Checks a value against a JSON schema, and names the place that does not fit. Schemas come from other programs, so the work is
//! bounded, and a keyword that is not supported never refuses a value.

mod compare;
mod describe;
mod pattern;
#[cfg(test)]
mod tests;

use compare::{canonical, is_multiple, is_of_type, order};
use describe::{article, describe, list};
use pattern::Patterns;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

/// Schemas inside each other, by keywords and references. More than a value from the wire has levels.
const MAX_DEPTH: usize = 192;
/// Steps of one check: about 0.1 s. A schema whose references double the work at each level ends here.
const MAX_STEPS: u64 = 2_000_000;

/// Keywords of the standard that are not checked. A value that fits only by them is a guess, and a guess refuses nothing.
const UNSUPPORTED: [&str; 9] = [
    "if",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
];

/// A place of a value that does not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The place, as a JSON pointer (RFC 6901). Empty: the value itself. A missing member is the place where it should be.
    pub pointer: String,
    /// The expectation there, for the caller.
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the arguments" } else { &self.pointer };
        write!(f, "{place}: {}", self.problem)
    }
}

impl std::error::Error for Mismatch {}

/// Checks a value against a schema. Its references may lead to places of the same schema.
pub fn check(schema: &Value, value: &Value) -> Result<(), Mismatch> {
    let mut checker = Checker {
        root: schema,
        path: Vec::new(),
        depth: 0,
        steps: MAX_STEPS,
        patterns: Patterns::default(),
        guessed: false,
    };
    match checker.visit(schema, value) {
        Ok(()) => Ok(()),
        Err(Stop::Mismatch(mismatch)) => Err(mismatch),
        Err(Stop::TooMuch(limit)) => Err(Mismatch {
            pointer: pointer(&checker.path),
            problem: format!("the schema is too complex to check this value: {limit}"),
        }),
    }
}

/// Adds the defaults of a schema's own properties to arguments that lack them. After the check: a default that its own schema
/// refuses is not the caller's mistake.
pub fn apply_defaults(schema: &Value, args: &mut Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        if let Some(default) = property.get("default").filter(|_| !args.contains_key(name)) {
            args.insert(name.clone(), default.clone());
        }
    }
}

/// Returns the schema of a local reference: `#`, `#/$defs/name`.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    root.pointer(&fragment.replace("%24", "$").replace("%25", "%"))
}

/// The reason why a check ends.
enum Stop {
    Mismatch(Mismatch),
    /// The limit that was reached. No alternative is tried after it.
    TooMuch(&'static str),
}

struct Checker<'a> {
    root: &'a Value,
    /// The way to the value that is checked.
    path: Vec<String>,
    depth: usize,
    /// Steps that are left.
    steps: u64,
    patterns: Patterns<'a>,
    /// Something was not checked, so a value that fits may not fit.
    guessed: bool,
}

impl<'a> Checker<'a> {
    fn visit(&mut self, schema: &'a Value, value: &Value) -> Result<(), Stop> {
        self.spend(1)?;
        if self.depth == MAX_DEPTH {
            return Err(Stop::TooMuch("too many schemas inside each other"));
        }
        self.depth += 1;
        let result = match schema {
            Value::Object(keywords) => self.keywords(schema, keywords, value),
            Value::Bool(false) => self.mismatch("is not allowed".into()),
            _ => Ok(()),
        };
        self.depth -= 1;
        result
    }

    fn keywords(&mut self, schema: &'a Value, keywords: &'a Map<String, Value>, value: &Value) -> Result<(), Stop> {
        if value.is_null() && keywords.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        self.guessed |= UNSUPPORTED.iter().any(|name| keywords.contains_key(*name));
        self.reference(keywords, value)?;
        if !self.fits_type(keywords.get("type"), value)? {
            let expected = describe(schema).unwrap_or("another type".into());
            return self.mismatch(format!("expected {expected}, got {}", article(value)));
        }
        self.constants(keywords, value)?;
        match value {
            Value::Object(members) => self.object(keywords, members)?,
            Value::Array(items) => self.array(keywords, items)?,
            Value::String(text) => self.string(keywords, text)?,
            Value::Number(number) => self.number(keywords, number)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combinations(schema, keywords, value)
    }

    fn reference(&mut self, keywords: &'a Map<String, Value>, value: &Value) -> Result<(), Stop> {
        let Some(reference) = keywords.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        match resolve(self.root, reference) {
            Some(target) => self.visit(target, value),
            None => {
                self.guessed = true;
                Ok(())
            }
        }
    }

    fn fits_type(&mut self, types: Option<&Value>, value: &Value) -> Result<bool, Stop> {
        match types {
            Some(Value::String(name)) => Ok(is_of_type(name, value)),
            Some(Value::Array(names)) => {
                self.spend(names.len())?;
                Ok(names.iter().any(|name| name.as_str().is_none_or(|name| is_of_type(name, value))))
            }
            _ => Ok(true),
        }
    }

    fn constants(&mut self, keywords: &Map<String, Value>, value: &Value) -> Result<(), Stop> {
        if let Some(expected) = keywords.get("const")
            && !self.equals(expected, value)?
        {
            return self.mismatch(format!("expected {}", list(std::slice::from_ref(expected))));
        }
        let Some(Value::Array(choices)) = keywords.get("enum") else { return Ok(()) };
        for choice in choices {
            if self.equals(choice, value)? {
                return Ok(());
            }
        }
        self.mismatch(format!("expected {}", list(choices)))
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, members: &Map<String, Value>) -> Result<(), Stop> {
        let properties = keywords.get("properties").and_then(Value::as_object);
        if let Some(Value::Array(names)) = keywords.get("required") {
            self.spend(names.len())?;
            if let Some(name) = names.iter().filter_map(Value::as_str).find(|name| !members.contains_key(*name)) {
                let expected = properties.and_then(|p| p.get(name)).and_then(describe).unwrap_or("a value".into());
                return self.within(name, |checker| checker.mismatch(format!("is missing: expected {expected}")));
            }
        }
        self.bounds(keywords, ["minProperties", "maxProperties"], members.len() as u64, "members")?;
        for (name, member) in members {
            self.within(name, |checker| checker.member(keywords, properties, name, member))?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        keywords: &'a Map<String, Value>,
        properties: Option<&'a Map<String, Value>>,
        name: &str,
        member: &Value,
    ) -> Result<(), Stop> {
        if let Some(schema) = keywords.get("propertyNames") {
            self.visit(schema, &Value::String(name.into()))?;
        }
        let mut known = false;
        if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
            known = true;
            self.visit(schema, member)?;
        }
        for (pattern, schema) in keywords.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            if self.matches(pattern, name)? {
                known = true;
                self.visit(schema, member)?;
            }
        }
        match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) if !known => {
                let names: Vec<Value> =
                    properties.into_iter().flat_map(|p| p.keys()).map(|n| n.as_str().into()).collect();
                self.mismatch(match names.is_empty() {
                    true => "is not known: no member is expected here".into(),
                    false => format!("is not known: expected {}", list(&names)),
                })
            }
            Some(schema) if !known => self.visit(schema, member),
            _ => Ok(()),
        }
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, items: &[Value]) -> Result<(), Stop> {
        self.bounds(keywords, ["minItems", "maxItems"], items.len() as u64, "items")?;
        // Before 2020-12 a list of schemas is in `items`, and the schema of the rest in `additionalItems`.
        let (first, rest) = match keywords.get("items") {
            Some(Value::Array(first)) => (Some(first), keywords.get("additionalItems")),
            rest => (keywords.get("prefixItems").and_then(Value::as_array), rest),
        };
        for (i, item) in items.iter().enumerate() {
            if let Some(schema) = first.and_then(|first| first.get(i)).or(rest) {
                self.within(&i.to_string(), |checker| checker.visit(schema, item))?;
            }
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            for (i, item) in items.iter().enumerate() {
                let text = canonical(item);
                self.spend(text.len())?;
                if !seen.insert(text) {
                    return self.within(&i.to_string(), |checker| checker.mismatch("is there twice".into()));
                }
            }
        }
        Ok(())
    }

    fn string(&mut self, keywords: &'a Map<String, Value>, text: &str) -> Result<(), Stop> {
        if keywords.contains_key("minLength") || keywords.contains_key("maxLength") {
            self.bounds(keywords, ["minLength", "maxLength"], text.chars().count() as u64, "characters")?;
        }
        match keywords.get("pattern") {
            Some(Value::String(pattern)) if !self.matches(pattern, text)? => {
                self.mismatch(format!("expected a string that matches {}", list(&[Value::String(pattern.clone())])))
            }
            _ => Ok(()),
        }
    }

    fn number(&mut self, keywords: &Map<String, Value>, number: &Number) -> Result<(), Stop> {
        let bound = |name: &str| keywords.get(name).and_then(|bound| Some((bound, order(number, bound.as_number()?)?)));
        // Draft 4 has a boolean that changes the meaning of `minimum`.
        let strict = |name: &str| keywords.get(name) == Some(&Value::Bool(true));
        let problem = match (bound("minimum"), bound("exclusiveMinimum"), bound("maximum"), bound("exclusiveMaximum")) {
            (Some((min, Ordering::Equal)), ..) if strict("exclusiveMinimum") => format!("more than {min}"),
            (Some((min, Ordering::Less)), ..) => format!("{min} or more"),
            (_, Some((min, Ordering::Less | Ordering::Equal)), ..) => format!("more than {min}"),
            (.., Some((max, Ordering::Equal)), _) if strict("exclusiveMaximum") => format!("less than {max}"),
            (.., Some((max, Ordering::Greater)), _) => format!("{max} or less"),
            (.., Some((max, Ordering::Greater | Ordering::Equal))) => format!("less than {max}"),
            _ => match keywords.get("multipleOf").and_then(Value::as_number) {
                Some(unit) if !is_multiple(number, unit) => format!("a multiple of {unit}"),
                _ => return Ok(()),
            },
        };
        self.mismatch(format!("expected {problem}, got {number}"))
    }

    fn combinations(&mut self, schema: &'a Value, keywords: &'a Map<String, Value>, value: &Value) -> Result<(), Stop> {
        let schemas = |name: &str| keywords.get(name).and_then(Value::as_array);
        for part in schemas("allOf").into_iter().flatten() {
            self.visit(part, value)?;
        }
        if let Some(alternatives) = schemas("anyOf") {
            self.alternatives(schema, alternatives, value, usize::MAX)?;
        }
        if let Some(alternatives) = schemas("oneOf") {
            self.alternatives(schema, alternatives, value, 1)?;
        }
        match keywords.get("not") {
            Some(refused) if matches!(self.attempt(refused, value)?, Attempt::Fits { surely: true }) => {
                self.mismatch("is a value that is not allowed".into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that at least one alternative fits, and no more than `most` surely do.
    fn alternatives(
        &mut self,
        schema: &'a Value,
        alternatives: &'a [Value],
        value: &Value,
        most: usize,
    ) -> Result<(), Stop> {
        let (mut fitting, mut sure) = (0, 0);
        let mut deepest: Option<Mismatch> = None;
        for alternative in alternatives {
            match self.attempt(alternative, value)? {
                Attempt::Fits { surely } => (fitting, sure) = (fitting + 1, sure + usize::from(surely)),
                Attempt::Differs(mismatch) => {
                    if deepest.as_ref().is_none_or(|deepest| mismatch.pointer.len() > deepest.pointer.len()) {
                        deepest = Some(mismatch);
                    }
                }
            }
            if fitting > 0 && most == usize::MAX {
                return Ok(());
            }
        }
        match deepest {
            _ if sure > most => self.mismatch(format!("fits {sure} alternatives, expected exactly one")),
            Some(mismatch) if fitting == 0 => match describe(schema) {
                Some(expected) if mismatch.pointer.len() == pointer(&self.path).len() => {
                    self.mismatch(format!("expected {expected}, got {}", article(value)))
                }
                _ => Err(Stop::Mismatch(mismatch)),
            },
            _ => Ok(()),
        }
    }

    fn attempt(&mut self, schema: &'a Value, value: &Value) -> Result<Attempt, Stop> {
        let guessed = std::mem::replace(&mut self.guessed, false);
        let path = self.path.len();
        let result = self.visit(schema, value);
        let surely = !self.guessed;
        self.guessed |= guessed;
        match result {
            Ok(()) => Ok(Attempt::Fits { surely }),
            Err(Stop::Mismatch(mismatch)) => {
                self.path.truncate(path);
                Ok(Attempt::Differs(mismatch))
            }
            Err(stop) => Err(stop),
        }
    }

    fn bounds(&mut self, keywords: &Map<String, Value>, names: [&str; 2], size: u64, unit: &str) -> Result<(), Stop> {
        let bound = |name: &str| keywords.get(name).and_then(Value::as_f64);
        let problem = match (bound(names[0]), bound(names[1])) {
            (Some(min), _) if (size as f64) < min => format!("{min} or more"),
            (_, Some(max)) if (size as f64) > max => format!("{max} or fewer"),
            _ => return Ok(()),
        };
        self.mismatch(format!("expected {problem} {unit}, got {size}"))
    }

    /// Searches a text for a pattern. One that cannot be checked matches, as a guess.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<bool, Stop> {
        let steps = self.patterns.prepare(pattern, text);
        match steps {
            Some(steps) if steps <= self.steps => {
                self.spend(steps as usize)?;
                Ok(self.patterns.is_match(pattern, text))
            }
            _ => {
                self.guessed = true;
                Ok(true)
            }
        }
    }

    fn equals(&mut self, a: &Value, b: &Value) -> Result<bool, Stop> {
        self.spend(1)?;
        Ok(match (a, b) {
            (Value::Number(a), Value::Number(b)) => order(a, b) == Some(Ordering::Equal),
            (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => {
                let (a, b) = (canonical(a), canonical(b));
                self.spend(a.len() + b.len())?;
                a == b
            }
            (a, b) => a == b,
        })
    }

    /// Continues at a member of the value. The path stays there if the check ends there.
    fn within(&mut self, name: &str, check: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        self.path.push(name.into());
        check(self)?;
        self.path.pop();
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps = self.steps.checked_sub(steps as u64).ok_or(Stop::TooMuch("too many steps"))?;
        Ok(())
    }

    fn mismatch(&self, problem: String) -> Result<(), Stop> {
        Err(Stop::Mismatch(Mismatch { pointer: pointer(&self.path), problem }))
    }
}

/// The outcome of an alternative.
enum Attempt {
    Fits { surely: bool },
    Differs(Mismatch),
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}
