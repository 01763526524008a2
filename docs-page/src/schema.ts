/** Schemas in words: the type of a value, its bounds, and its fields. */
import {
  type Digits,
  inline,
  nameOf,
  type OpenApi,
  type Parameter,
  type Schema,
  schemaOf,
} from './document.ts'
import { type Html, html, join, prose } from './html.ts'

/** What there is to say of parameters, or of the fields of an object, each with its name. */
export const fields = (document: OpenApi, list: readonly Parameter[]): Html =>
  html`<dl class="fields">${list.map((one) => field(document, one))}</dl>`

function field(document: OpenApi, parameter: Parameter): Html {
  const { in: place, name, required = false, description, schema: part = {} } = parameter
  const schema = schemaOf(document, part)
  return html`
    <div>
      <dt>
        <code class="name">${name}</code>
        <span class="type">${typeOf(part)}${place && ` · ${place}`}</span>
        ${required && html`<span class="required">required</span>`}
      </dt>
      <dd>
        ${prose(description ?? schema.description)}
        ${bounds(schema)}
        ${part.$ref === undefined && inside(document, part)}
      </dd>
    </div>`
}

/** A schema: its type, its bounds and its fields. */
export function tree(document: OpenApi, part: Schema): Html {
  const schema = schemaOf(document, part)
  return html`<p class="type">${typeOf(part)}</p>${bounds(schema)}${inside(document, schema)}`
}

/** The fields of an object. Those of a component that it refers to are explained there. */
function inside(document: OpenApi, { properties, required = [] }: Schema): Html | undefined {
  if (!properties) return undefined
  const list = Object.entries(properties).map(([name, schema]) => ({
    name,
    required: required.includes(name),
    schema,
  }))
  return fields(document, list)
}

/** The type of a schema, or its name with a link to where it is explained. */
export function typeOf(schema: Schema): Html {
  const name = nameOf(schema)
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`
  if (schema.anyOf) return join(schema.anyOf.map(typeOf), ' or ')
  if (schema.items) return html`array of ${typeOf(schema.items)}`
  return html`${[schema.type ?? 'any'].flat().join(' or ')}${schema.format && ` (${schema.format})`}`
}

/** What values a schema allows, besides its type. */
function bounds(schema: Schema): Html | undefined {
  // Each value of a field that may be null has its own.
  const parts = [...(schema.anyOf ?? []), schema].flatMap(boundsOf)
  return parts.length > 0 ? html`<p class="bounds">${join(parts, ' · ')}</p>` : undefined
}

const boundsOf = (schema: Schema) =>
  [
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' items'),
    schema.enum && html`one of ${join(schema.enum.map(code), ', ')}`,
    schema.default === undefined ? undefined : html`default ${code(schema.default)}`,
    schema.examples && html`Example: ${join(schema.examples.map(code), ', ')}`,
  ].filter((part) => part !== undefined)

function range(from: Digits | undefined, to: Digits | undefined, unit: string): string | undefined {
  if (from && to) return `${from.rawJSON} to ${to.rawJSON}${unit}`
  if (from) return `at least ${from.rawJSON}${unit}`
  return to && `at most ${to.rawJSON}${unit}`
}

const code = (value: unknown): Html => html`<code>${inline(value)}</code>`
