/** Schemas in words: the type of a value, its bounds, and the fields of an object. */
import {
  type Digits,
  inline,
  nameOf,
  type OpenApi,
  type Parameter,
  resolve,
  type Schema,
} from './document.ts'
import { Html, html, prose } from './html.ts'

/** A list of what there is to say of fields or parameters, each with its name. */
export const fields = (document: OpenApi, items: readonly Parameter[]): Html =>
  html`<dl class="fields">${items.map((item) => field(document, item))}</dl>`

function field(document: OpenApi, parameter: Parameter): Html {
  const { in: place, name, required, description, schema } = parameter
  const resolved = resolve(document, schema)
  return html`
    <div>
      <dt>
        <code class="name">${name}</code>
        <span class="type">${typeOf(schema)}${place && ` · ${place}`}</span>
        ${required ? html`<span class="required">required</span>` : undefined}
      </dt>
      <dd>
        ${prose(description ?? resolved.description)}
        ${bounds(resolved)}
      </dd>
    </div>`
}

/** What is in a schema: the fields of an object, or of the items of an array; else what it allows. */
export function content(document: OpenApi, schema: Schema): Html {
  const resolved = resolve(document, schema)
  const { properties, required = [], items } = resolved
  if (!properties) {
    const type = items ? html`array of ${typeOf(items)}` : typeOf(schema)
    const inner = items && resolve(document, items).properties && content(document, items)
    return html`<p>${type}</p>${bounds(resolved)}${inner}`
  }
  const list = Object.entries(properties).map(([name, schema]) => ({
    name,
    required: required.includes(name),
    schema,
  }))
  return fields(document, list)
}

/** A schema's type, or its name with a link to where it is explained. */
export function typeOf(schema: Schema): Html {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref)
    return html`<a href="#schema-${name}">${name}</a>`
  }
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return join(choices.map(typeOf), ' or ')
  if (schema.items) return html`array of ${typeOf(schema.items)}`
  const type = [schema.type ?? 'any'].flat().join(' or ')
  return html`${type}${schema.format && ` (${schema.format})`}`
}

const join = (parts: (Html | string)[], between: string): Html =>
  new Html(parts.map((part) => html`${part}`.text).join(between))

/** What values a schema allows, besides its type. */
function bounds(schema: Schema): Html | undefined {
  const known = schema.const === undefined ? schema.enum : [schema.const]
  const parts = [
    isWhole(schema) ? undefined : range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' items'),
    known && html`one of ${join(known.map(code), ', ')}`,
    schema.default === undefined ? undefined : html`default ${code(schema.default)}`,
    schema.examples && html`Example: ${join(schema.examples.map(code), ', ')}`,
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
