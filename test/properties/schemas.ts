/** Valid and invalid values for the schemas of the document. */
import fc from 'fast-check'
import { character, dateTime, integer, name, noDateTime, oddJson } from './values.ts'

/** The part of JSON Schema that the document uses. Another keyword fails the test. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  properties?: Record<string, Schema>
  items?: Schema
  minItems?: number
  maxItems?: number
  /** The values of a record. */
  additionalProperties?: Schema
  propertyNames?: Schema
  anyOf?: Schema[]
  required?: string[]
}

const known = ['$ref', 'type', 'enum', 'format', 'minimum', 'maximum', 'minLength', 'maxLength']
const more = [
  'anyOf',
  'pattern',
  'properties',
  'required',
  'items',
  'minItems',
  'maxItems',
  'const',
]
const ofRecords = ['additionalProperties', 'propertyNames']
/** Keywords that say nothing of the values. */
const texts = ['description', 'examples', 'default']

/** The schemas of a document, by the name in `$ref`. */
export type Schemas = Record<string, Schema>

/** A schema without a reference, and with one type. */
type Resolved = Schema & { type?: string }

function resolve({ $ref, ...schema }: Schema, schemas: Schemas): Resolved {
  const named: Schema | undefined = $ref === undefined ? {} : schemas[$ref.split('/').at(-1) ?? '']
  const { type, ...resolved } = { ...named, ...schema }
  const strange = Object.keys(resolved).filter(
    (keyword) => ![...known, ...more, ...ofRecords, ...texts].includes(keyword),
  )
  if (!named || strange.length > 0) throw new Error(`Not known yet: ${$ref ?? strange}`)
  if ('const' in resolved) return { enum: [resolved.const] }
  if (Array.isArray(type)) return { anyOf: type.map((one) => ({ ...resolved, type: one })) }
  return { ...resolved, ...(type !== undefined && { type }) }
}

/** Returns whether a string is valid for a schema, apart from its format. */
function isValid(text: string, { minLength = 0, maxLength = Infinity, pattern = '' }: Schema) {
  const { length } = [...text] // JSON Schema counts code points
  return length >= minLength && length <= maxLength && new RegExp(pattern, 'u').test(text)
}

/** The pattern of a name has only the ASCII and Latin-1 part of this rule, which its description has in words. */
const isBlank = (text: string) =>
  /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(text)

// A schema cannot require well-formed Unicode, so these strings are all well-formed.
const text = fc
  .oneof(
    name,
    fc.string({ maxLength: 20 }),
    fc.string({ unit: fc.constantFrom('"', '\\', ' ', ',', 'a', 'é'), maxLength: 6 }),
    fc.tuple(fc.constantFrom('a', ' ', '"'), fc.nat(600)).map(([one, count]) => one.repeat(count)),
  )
  .filter((value) => value.isWellFormed())

/** Strings of the formats that have no pattern, or one that fast-check cannot read. */
const formats: Record<string, fc.Arbitrary<string>> = {
  'date-time': dateTime,
  email: fc.emailAddress(),
  uri: fc.webUrl(),
}

/** Strings at the limits of length of a schema, and one character beyond them. */
const atEdges = ({ minLength = 0, maxLength = 100 }: Schema) =>
  fc
    .tuple(character, fc.constantFrom(minLength, maxLength), fc.constantFrom(-1, 0, 1))
    .map(([one, edge, step]) => one.repeat(Math.max(0, edge + step)))

/** The minimum and the maximum of an integer: its own, or those of its format. */
function rangeOf({ format, minimum, maximum }: Schema): { minimum: bigint; maximum: bigint } {
  if (format === 'int64') return { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n }
  if (minimum === undefined || maximum === undefined) throw new Error('An integer has no range')
  return { minimum: BigInt(minimum), maximum: BigInt(maximum) }
}

/** Values that are valid for the schema. */
export function valid(schema: Schema, schemas: Schemas): fc.Arbitrary<unknown> {
  const resolved = resolve(schema, schemas)
  const { type, properties = {}, required = [] } = resolved
  if (resolved.enum) return fc.constantFrom(...resolved.enum)
  if (resolved.anyOf) return fc.oneof(...resolved.anyOf.map((one) => valid(one, schemas)))
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer') {
    const { minimum: min, maximum: max } = rangeOf(resolved)
    const inside = fc.oneof(fc.constantFrom(min, max), fc.bigInt({ min, max }), integer)
    return inside.filter((value) => value >= min && value <= max)
  }
  if (type === 'number') {
    const { minimum: min = -1e15, maximum: max = 1e15 } = resolved
    return fc.oneof(fc.constantFrom(min, max), fc.double({ min, max, noNaN: true }))
  }
  if (type === 'string') return validText(resolved)
  if (type === 'array') return validList(resolved, schemas)
  if (resolved.additionalProperties) return validRecord(resolved, schemas)
  if (type === 'object') {
    const fields = Object.entries(properties).map(([field, one]) => [field, valid(one, schemas)])
    // The compiler knows the names only as strings, not as keys of the record.
    const requiredKeys = required as never[]
    // Unknown fields are allowed.
    const others = fc.dictionary(fc.constantFrom('colour', 'constructor', 'Name'), oddJson)
    return fc
      .tuple(others, fc.record(Object.fromEntries(fields), { requiredKeys }))
      .map(([other, own]) => ({ ...other, ...own }))
  }
  throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
}

function validText(resolved: Resolved): fc.Arbitrary<string> {
  const { pattern, format = '' } = resolved
  const isOne = (value: string) => value.isWellFormed() && isValid(value, resolved)
  if (formats[format]) return formats[format].filter(isOne)
  const matching = pattern === undefined ? [] : [fc.stringMatching(new RegExp(pattern))]
  return fc
    .oneof(text, atEdges(resolved), ...matching)
    .filter((value) => isOne(value) && !isBlank(value))
}

/** Items that a list has beside its fewest: more would make bodies too large. */
const FEW = 3

function validList(resolved: Resolved, schemas: Schemas): fc.Arbitrary<unknown[]> {
  const { items = {}, minItems = 0, maxItems = Infinity } = resolved
  const item = valid(items, schemas)
  const some = { minLength: minItems, maxLength: Math.min(minItems + FEW, maxItems) }
  const isShort = ['integer', 'boolean'].includes(resolve(items, schemas).type ?? '')
  const full = isShort && maxItems <= 100 ? [{ minLength: maxItems, maxLength: maxItems }] : []
  return fc.oneof(...[some, ...full].map((length) => fc.array(item, length)))
}

/** Values that are invalid for the schema. */
export function invalid(schema: Schema, schemas: Schemas): fc.Arbitrary<unknown> {
  const resolved = resolve(schema, schemas)
  const { type, format, properties = {}, required = [] } = resolved
  const options = resolved.enum
  if (options) return fc.oneof(text, oddJson).filter((value) => !options.includes(value))
  if (resolved.anyOf) {
    const [one, other] = resolved.anyOf
    if (!one || other?.type !== 'null')
      throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
    return invalid(one, schemas).filter((value) => value !== null)
  }
  if (type === 'boolean')
    return fc.oneof(text, oddJson).filter((value) => typeof value !== 'boolean')
  if (type === 'integer') {
    const { minimum, maximum } = rangeOf(resolved)
    const isInside = (value: bigint) => value >= minimum && value <= maximum
    const outside = fc.constantFrom(minimum - 1n, maximum + 1n)
    return fc
      .oneof(outside, integer, text, oddJson)
      .filter((value) => !isInteger(value) || !isInside(BigInt(value)))
  }
  if (type === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = resolved
    const outside = [minimum - 1, maximum + 1]
      .filter(Number.isFinite)
      .map((one) => fc.constant(one))
    const other = fc.oneof(text, oddJson).filter((value) => !/number|bigint/.test(typeof value))
    return fc.oneof(other, ...outside)
  }
  if (type === 'string') {
    if (format === 'date-time') return fc.oneof(noDateTime, oddJson.filter(isNoText))
    if (format === 'uri') return fc.oneof(fc.constantFrom('', 'no URI'), oddJson.filter(isNoText))
    return fc
      .oneof(text, atEdges(resolved), oddJson)
      .filter((value) => typeof value !== 'string' || !isValid(value, resolved))
  }
  if (type === 'array') return invalidList(resolved, schemas)
  if (resolved.additionalProperties) {
    const wrong = fc.dictionary(
      keyOf(resolved, schemas),
      invalid(resolved.additionalProperties, schemas),
      {
        minKeys: 1,
        maxKeys: FEW,
      },
    )
    return fc.oneof(wrong, oddJson.filter(isNoObject))
  }
  if (type === 'object') {
    const whole = valid(resolved, schemas) as fc.Arbitrary<object> // only objects here
    const spoilt = Object.entries(properties).map(([field, one]) =>
      fc
        .tuple(whole, invalid(one, schemas))
        .map(([object, value]) => ({ ...object, [field]: value })),
    )
    const lacking = required.map((field) =>
      whole.map((object) =>
        Object.fromEntries(Object.entries(object).filter(([key]) => key !== field)),
      ),
    )
    return fc.oneof(...spoilt, ...lacking, oddJson.filter(isNoObject))
  }
  throw new Error(`Not known yet: ${JSON.stringify(resolved)}`)
}

/** What is no list, lists with one invalid item, and lists with one item too few or too many. */
function invalidList(resolved: Resolved, schemas: Schemas): fc.Arbitrary<unknown> {
  const { items = {}, minItems = 0, maxItems = Infinity } = resolved
  const item = valid(items, schemas)
  const none = oddJson.filter((value) => !Array.isArray(value))
  const spoilt = fc
    .tuple(validList(resolved, schemas), invalid(items, schemas), fc.nat())
    .map(([list, value, place]) => list.toSpliced(place % (list.length || 1), 1, value))
  const counts = [minItems - 1, maxItems + 1].filter((count) => count >= 0 && count <= 1_000)
  const wrong = counts.map((count) => item.map((one) => Array.from({ length: count }, () => one)))
  return fc.oneof(none, spoilt, ...wrong)
}

/** Names of a record, none of which is one of every object. */
const keyOf = ({ propertyNames }: Schema, schemas: Schemas): fc.Arbitrary<string> =>
  propertyNames
    ? valid(propertyNames, schemas).map(String)
    : fc.constantFrom('colour', 'constructor', 'a b', 'é')

function validRecord(resolved: Resolved, schemas: Schemas): fc.Arbitrary<unknown> {
  const values = valid(resolved.additionalProperties ?? {}, schemas)
  return fc.dictionary(keyOf(resolved, schemas), values, { maxKeys: FEW, noNullPrototype: true })
}

const isNoObject = (value: unknown) =>
  typeof value !== 'object' || value === null || Array.isArray(value)

const isNoText = (value: unknown) => typeof value !== 'string'

const isInteger = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || Number.isInteger(value)
