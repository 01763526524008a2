/**
 * Doc comments for the declarations of the client package, from the descriptions of the router: an
 * editor shows them for each procedure and field.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter, TRPCRouterRecord } from '@trpc/server'
import { z } from 'zod'
import type { RestMeta } from '../src/procedure/meta.ts'

type Procedures = Record<string, AnyTRPCProcedure>

/** A type of the service, whose declarations the package lacks: it would be `any` there. */
const FOREIGN = /import\(["'](?!@trpc\/)[^)]*\)[.\w]*/

/**
 * Returns the declarations of a router with a doc comment above each described property. The input is
 * the output of the compiler, with each property on a line of its own; the types do not change. Throws
 * Error for a description without a declaration, and for a type of the service.
 */
export function documented(declarations: string, router: AnyTRPCRouter): string {
  const texts = textsOf(router._def.procedures)
  const used = new Set<string>()
  const open: string[] = []
  const lines = declarations.split('\n').flatMap((line) => {
    const [, indent = '', closing, name] =
      /^(\s*)(\})?(?:["']?([^\s"']+?)["']?\??:)?/.exec(line) ?? []
    if (closing) open.pop()
    const place = [...open, name].filter(Boolean).join('.')
    const [foreign] = FOREIGN.exec(line) ?? []
    if (foreign)
      throw new Error(
        `${place} has the type ${foreign}: its procedure needs .output(…), or no such name`,
      )
    if (line.endsWith('{')) open.push(name ?? '')
    const text = name === undefined ? undefined : texts.get(place)
    if (text === undefined) return [line]
    used.add(place)
    return [...comment(text, indent), line]
  })
  const unused = [...texts.keys()].filter((place) => !used.has(place))
  if (unused.length > 0) throw new Error(`There is no declaration of ${unused}`)
  return lines.join('\n')
}

/** The declaration to replace, as the compiler prints it. */
const CLIENT = 'export type PetstoreClient = TRPCClient<AppRouter>;'

/**
 * Returns the declarations of the client with a documented property for each procedure. Without these
 * the properties come from a mapped type of tRPC, and TypeScript 7 shows no comments for them. Throws
 * Error if the declaration of the client is missing.
 */
export function documentedClient(declarations: string, { _def }: AnyTRPCRouter): string {
  const texts = textsOf(_def.procedures)
  const text = [
    'export interface PetstoreClient extends TRPCClient<AppRouter> {',
    ...propertiesOf(_def.record, texts),
    '}',
  ]
  if (!declarations.includes(CLIENT)) throw new Error(`There is no "${CLIENT}"`)
  return declarations.replace(CLIENT, () => text.join('\n'))
}

/** Returns the properties of the client for the procedures of a router, and for the routers in it. */
function propertiesOf(
  record: TRPCRouterRecord,
  texts: Map<string, string>,
  before: string[] = [],
): string[] {
  const indent = '    '.repeat(before.length + 1)
  return Object.entries(record).flatMap(([name, entry]) => {
    const path = [...before, name]
    const property = `${indent}${/^[\w$]+$/.test(name) ? name : JSON.stringify(name)}: `
    if (typeof entry !== 'function') {
      return [`${property}{`, ...propertiesOf(entry, texts, path), `${indent}};`]
    }
    const type = `TRPCClient<AppRouter>${path.map((key) => `[${JSON.stringify(key)}]`).join('')}`
    const text = texts.get(path.join('.'))
    return [...(text === undefined ? [] : comment(text, indent)), `${property}${type};`]
  })
}

const comment = (text: string, indent: string): string[] => [
  `${indent}/**`,
  ...text
    .replaceAll('*/', '*\\/')
    .split('\n')
    .map((line) => `${indent} * ${line}`.trimEnd()),
  `${indent} */`,
]

/**
 * Returns the descriptions by place: `listPets` of a procedure, `listPets.input.limit` of a field.
 */
function textsOf(procedures: Procedures): Map<string, string> {
  const texts = new Map<string, string>()
  for (const [name, { _def }] of Object.entries(procedures)) {
    const rest = restOf(_def)
    // tRPC's types name neither the library of the schemas nor the output.
    const { inputs, output } = _def as unknown as Definition
    if (rest) texts.set(name, procedureText(rest, procedures))
    for (const input of inputs) addFields(texts, `${name}.input`, jsonSchema(input, 'input'))
    if (output) addFields(texts, `${name}.output`, jsonSchema(output, 'output'))
  }
  return texts
}

/** Returns the description of a procedure; undefined for one of tRPC alone. */
const restOf = ({ meta }: AnyTRPCProcedure['_def']) =>
  (meta as { rest?: RestMeta } | undefined)?.rest

interface Definition {
  inputs: z.ZodType[]
  output?: z.ZodType
}

function procedureText(rest: RestMeta, procedures: Procedures): string {
  const { summary, description, creates, takesKey, deprecated } = rest
  const repeatable = takesKey
    ? ` With \`{ context: { idempotencyKey } }\` a call can be repeated safely: the repetition ${creates ? 'adds' : 'changes'} nothing and returns the first result.`
    : ''
  const text = `${summary}.\n\n${description}${repeatable}`
  const ending = deprecated
    ? `\n\n@deprecated It ends on ${longDate(deprecated.sunset)}: use \`GET ${deprecated.successor}\`.`
    : ''
  return inNames(text + ending, procedures)
}

/** Returns a text in which procedure names replace REST operations. */
const inNames = (text: string, procedures: Procedures): string =>
  Object.entries(procedures).reduce((changed, [name, { _def }]) => {
    const rest = restOf(_def)
    return rest ? changed.replaceAll(`\`${rest.method} ${rest.path}\``, `\`${name}\``) : changed
  }, text)

const longDate = (date: Date): string =>
  date.toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' })

type JsonSchema = z.core.JSONSchema.BaseSchema

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' })

/**
 * Adds the descriptions of the fields below a place. The fields of list items count as fields of
 * the list.
 */
function addFields(
  texts: Map<string, string>,
  place: string,
  schema: JsonSchema,
  definitions = schema.$defs ?? {},
): void {
  const id = schema.$ref?.split('/').at(-1)
  const definition = id === undefined ? undefined : definitions[id]
  for (const part of [definition, schema.items]) {
    if (isSchema(part)) addFields(texts, place, part, definitions)
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    if (!isSchema(field)) continue
    const text = fieldText(field, definitions)
    if (text) texts.set(`${place}.${name}`, text)
    addFields(texts, `${place}.${name}`, field, definitions)
  }
}

const isSchema = (part: unknown): part is JsonSchema => typeof part === 'object' && part !== null

function fieldText(field: JsonSchema, definitions: Record<string, JsonSchema>): string {
  const id = field.$ref?.split('/').at(-1)
  const { description } = { ...(id !== undefined && definitions[id]), ...field }
  const { minimum, maximum } = field
  const hasBounds =
    minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
  return [
    [description, hasBounds && `From ${minimum} to ${maximum}.`].filter(Boolean).join(' '),
    field.default !== undefined && `@default ${JSON.stringify(field.default)}`,
  ]
    .filter(Boolean)
    .join('\n')
}
