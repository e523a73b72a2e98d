//! Takes our own keys out of an event on the way to its derived `Deserialize`.
//!
//! The standard keys of an event are parsed by that, exactly as strictly as the format is. [`Split`] stands between it
//! and the JSON text, so that a line is walked once.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value::StrDeserializer,
};

use super::extra::Extra;
use super::lenient::Checked;

/// A deserializer of a struct that hands the standard keys on and keeps ours.
pub(super) struct Split<'x, D, X> {
    pub(super) inner: D,
    pub(super) extra: &'x mut X,
}

impl<'de, D: Deserializer<'de>, X: Extra> Deserializer<'de> for Split<'_, D, X> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = SplitVisitor {
            visitor,
            fields,
            extra: self.extra,
        };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct SplitVisitor<'x, V, X> {
    visitor: V,
    fields: &'static [&'static str],
    extra: &'x mut X,
}

impl<'de, V: Visitor<'de>, X: Extra> Visitor<'de> for SplitVisitor<'_, V, X> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(SplitMap {
            map,
            fields: self.fields,
            extra: self.extra,
            kind_seen: false,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(seq)
    }
}

struct SplitMap<'x, A, X> {
    map: A,
    fields: &'static [&'static str],
    extra: &'x mut X,
    kind_seen: bool,
}

impl<'de, A: MapAccess<'de>, X: Extra> MapAccess<'de> for SplitMap<'_, A, X> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(key) = self.map.next_key_seed(KeyOf::<X>::new(self.fields))? else {
                return Ok(None);
            };
            match key {
                Key::Standard(name) => {
                    return seed
                        .deserialize(StrDeserializer::<A::Error>::new(name))
                        .map(Some);
                }
                Key::Ours(name) => self.extra.read(&name, &mut self.map)?,
                Key::Kind if self.kind_seen => return Err(de::Error::duplicate_field("kind")),
                Key::Kind => {
                    self.kind_seen = true;
                    self.map.next_value::<Checked>()?;
                }
                Key::Foreign => {
                    self.map.next_value::<Checked>()?;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

enum Key {
    Standard(&'static str),
    Ours(String),
    Kind,
    Foreign,
}

struct KeyOf<X> {
    fields: &'static [&'static str],
    extra: PhantomData<X>,
}

impl<X> KeyOf<X> {
    fn new(fields: &'static [&'static str]) -> Self {
        Self {
            fields,
            extra: PhantomData,
        }
    }
}

impl<'de, X: Extra> DeserializeSeed<'de> for KeyOf<X> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Key, D::Error> {
        inner.deserialize_str(self)
    }
}

impl<X: Extra> Visitor<'_> for KeyOf<X> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        let standard = self.fields.iter().find(|field| **field == key);
        Ok(match standard {
            Some(field) => Key::Standard(field),
            None if X::knows(key) => Key::Ours(key.to_owned()),
            None if key == "kind" => Key::Kind,
            None => Key::Foreign,
        })
    }
}
