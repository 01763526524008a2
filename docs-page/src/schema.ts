/** Schemas in words: the type of a value, its bounds, and the tree of its fields. */
import {
  type Digits,
  inline,
  type OpenApi,
  type Parameter,
  type Schema,
  type SchemaPart,
  schemaNameOf,
  schemaOf,
  schemaOfParameter,
} from './document.ts'
import { type Html, html, join, prose } from './html.ts'

/** The references around a part, none of which is unfolded in itself again. */
type Around = readonly string[]

/** How many references are unfolded in each other. */
const MAX_AROUND = 8

/** A list of what there is to say of fields or parameters, each with its name. */
export const fields = (document: OpenApi, items: readonly Parameter[], around: Around = []): Html =>
  html`<dl class="fields">${items.map((item) => field(document, item, around))}</dl>`

function field(document: OpenApi, parameter: Parameter, around: Around): Html {
  const { in: place, name, required, description } = parameter
  const part = schemaOfParameter(parameter)
  const schema = schemaOf(document, part)
  const flags = [
    required && html`<span class="required">required</span>`,
    (parameter.deprecated || schema.deprecated) && html`<span class="deprecated">deprecated</span>`,
    schema.readOnly && html`<span class="flag">read only</span>`,
    schema.writeOnly && html`<span class="flag">write only</span>`,
  ]
  return html`
    <div>
      <dt>
        <code class="name">${name}</code>
        <span class="type">${typeOf(part)}${place && ` · ${place}`}</span>
        ${flags.map((flag) => flag || undefined)}
      </dt>
      <dd>
        ${prose(description ?? schema.description)}
        ${bounds(schema)}
        ${folded(document, part, around)}
      </dd>
    </div>`
}

/** What is in a field that is more than one value, folded up under its name. */
function folded(document: OpenApi, part: SchemaPart, around: Around): Html | undefined {
  const inside = inner(document, part, around)
  if (!inside) return undefined
  return html`<details class="fold"><summary>${titleOf(part)}</summary>${inside}</details>`
}

const titleOf = (part: SchemaPart): string => {
  if (typeof part === 'boolean') return 'Fields'
  const name = schemaNameOf(part)
  if (name !== undefined) return `Fields of ${name}`
  return part.items === undefined ? 'Fields' : titleOf(part.items)
}

/** The tree of a schema: its type, what a named list is a list of, its bounds and, indented, its fields. */
export function tree(document: OpenApi, part: SchemaPart | undefined): Html {
  const schema = schemaOf(document, part)
  const isNamedList = schema.items !== undefined && typeof part === 'object' && part.$ref
  const inside = inner(document, part ?? true, [])
  return html`
    <p class="root">${typeOf(part)}</p>
    ${isNamedList ? html`<p class="root">array of ${typeOf(schema.items)}</p>` : undefined}
    ${bounds(schema)}
    ${inside && html`<div class="nested">${inside}</div>`}`
}

/** The fields, the items or the choices of a schema; undefined where it has none. */
function inner(document: OpenApi, part: SchemaPart, around: Around): Html | undefined {
  if (typeof part === 'boolean') return undefined
  const { $ref } = part
  if ($ref !== undefined && around.includes($ref)) return undefined
  const within = $ref === undefined ? around : [...around, $ref]
  if (within.length > MAX_AROUND) return undefined
  const schema = schemaOf(document, part)
  const {
    properties = {},
    required = [],
    additionalProperties: others,
    items,
    prefixItems,
  } = schema
  const list: Parameter[] = Object.entries(properties).map(([name, schema]) => ({
    name,
    required: required.includes(name),
    schema,
  }))
  if (typeof others === 'object') list.push({ name: '(any other name)', schema: others })
  for (const [index, schema] of (prefixItems ?? []).entries()) {
    list.push({ name: `item ${index + 1}`, schema })
  }
  const choices = schema.oneOf ?? schema.anyOf ?? []
  const pieces = [
    list.length > 0 ? fields(document, list, within) : undefined,
    items === undefined ? undefined : inner(document, items, within),
    ...choices.map((choice) => {
      const inside = inner(document, choice, within)
      return (
        inside &&
        html`<details class="fold"><summary>${nameOfChoice(document, choice)}</summary>${inside}</details>`
      )
    }),
  ].filter((piece) => piece !== undefined)
  return pieces.length > 0 ? html`${pieces}` : undefined
}

const nameOfChoice = (document: OpenApi, part: SchemaPart): Html =>
  html`If ${schemaOf(document, part).title ?? (typeof part === 'object' ? schemaNameOf(part) : undefined) ?? typeOf(part)}`

/** A schema's type, or its name with a link to where it is explained. */
export function typeOf(part: SchemaPart | undefined): Html {
  if (part === undefined || part === true) return html`any`
  if (part === false) return html`nothing`
  const name = schemaNameOf(part)
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`
  if (part.$ref !== undefined) return html`${part.$ref}`
  const choices = part.oneOf ?? part.anyOf
  if (choices && choices.length > 0) return join(choices.map(typeOf), ' or ')
  if (part.allOf && part.allOf.length > 0) return join(part.allOf.map(typeOf), ' and ')
  // No item follows those of the tuple.
  if (part.prefixItems && part.items === false) return html`array`
  if (part.items !== undefined) return html`array of ${typeOf(part.items)}`
  const implied = part.properties || part.additionalProperties ? 'object' : 'any'
  const type = [part.type ?? implied].flat().join(' or ')
  return html`${type}${part.format && ` (${part.format})`}`
}

/** Longer patterns tell a reader nothing. */
const MAX_PATTERN = 40

/** What values a schema allows, besides its type. */
function bounds(schema: Schema): Html | undefined {
  const known = schema.const === undefined ? schema.enum : [schema.const]
  const examples = schema.examples ?? (schema.example === undefined ? undefined : [schema.example])
  const parts = [
    isWhole(schema) ? undefined : range(schema.minimum, schema.maximum, ''),
    schema.exclusiveMinimum && `greater than ${schema.exclusiveMinimum.rawJSON}`,
    schema.exclusiveMaximum && `less than ${schema.exclusiveMaximum.rawJSON}`,
    schema.multipleOf && `a multiple of ${schema.multipleOf.rawJSON}`,
    range(schema.minLength, schema.maxLength, ' characters'),
    schema.pattern && schema.pattern.length <= MAX_PATTERN
      ? html`matches ${code(schema.pattern)}`
      : undefined,
    range(schema.minItems, schema.maxItems, ' items'),
    schema.uniqueItems ? 'no item twice' : undefined,
    known && html`one of ${join(known.map(code), ', ')}`,
    schema.default === undefined ? undefined : html`default ${code(schema.default)}`,
    examples && html`Example: ${join(examples.map(code), ', ')}`,
  ].filter((part) => part !== undefined)
  return parts.length > 0 ? html`<p class="bounds">${join(parts, ' · ')}</p>` : undefined
}

/** Whether the bounds are those of the format itself, and so say nothing more. */
const isWhole = ({ format, minimum, maximum }: Schema): boolean =>
  format === 'int64' &&
  minimum?.rawJSON === '-9223372036854775808' &&
  maximum?.rawJSON === '9223372036854775807'

function range(from: Digits | undefined, to: Digits | undefined, unit: string): string | undefined {
  if (from && to) return `${from.rawJSON} to ${to.rawJSON}${unit}`
  if (from) return `at least ${from.rawJSON}${unit}`
  return to && `at most ${to.rawJSON}${unit}`
}

const code = (value: unknown): Html => html`<code>${inline(value)}</code>`
