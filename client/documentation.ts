/**
 * The words of the router, as doc comments in the declarations that the client package ships: what an
 * editor shows over a name.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import { z } from 'zod'
import type { RestMeta } from '../src/procedure/rest-meta.ts'

type Procedures = Record<string, AnyTRPCProcedure>

/**
 * The declarations of a router as the compiler printed them, each property on a line of its own, with
 * a comment above each that the router has words for. The types stay those of the compiler.
 */
export function documented(declarations: string, router: AnyTRPCRouter): string {
  const words = wordsOf(router._def.procedures)
  const used = new Set<string>()
  const open: string[] = []
  const lines = declarations.split('\n').flatMap((line) => {
    const [, indent = '', closing, name] = /^(\s*)(\})?(?:"?([\w$-]+)"?\??:)?/.exec(line) ?? []
    const closed = closing === undefined ? undefined : open.pop()
    const place = [...open, name].filter(Boolean).join('.')
    // What opens where something closed is the rest of the same property.
    if (line.endsWith('{')) open.push(name ?? closed ?? '')
    const text = name === undefined ? undefined : words.get(place)
    if (text === undefined) return [line]
    used.add(place)
    return [...comment(text, indent), line]
  })
  const unused = [...words.keys()].filter((place) => !used.has(place))
  if (unused.length > 0) throw new Error(`There is no declaration of ${unused}`)
  return lines.join('\n')
}

/** A type by its name, as the compiler printed it in the client's declarations. */
const CLIENT = 'export type PetstoreClient = TRPCClient<AppRouter>;'

/**
 * The declarations of the client, with a property of its own, and words, for each procedure. Without
 * them its properties come from a mapped type of tRPC's, over which TypeScript 7 shows no comments.
 */
export function documentedClient(declarations: string, router: AnyTRPCRouter): string {
  const procedures: Procedures = router._def.procedures
  const words = wordsOf(procedures)
  const properties = Object.keys(procedures)
    .filter((name) => !name.includes('.'))
    .flatMap((name) => [
      ...comment(words.get(name) ?? '', '    '),
      `    ${name}: TRPCClient<AppRouter>['${name}'];`,
    ])
  const text = [
    'export interface PetstoreClient extends TRPCClient<AppRouter> {',
    ...properties,
    '}',
  ]
  if (!declarations.includes(CLIENT)) throw new Error(`There is no "${CLIENT}"`)
  return declarations.replace(CLIENT, () => text.join('\n'))
}

const comment = (text: string, indent: string): string[] => [
  `${indent}/**`,
  ...text
    .replaceAll('*/', '*\\/')
    .split('\n')
    .map((line) => `${indent} * ${line}`.trimEnd()),
  `${indent} */`,
]

/** What there is to say, by place: `listPets` of a procedure, `listPets.input.limit` of a field. */
function wordsOf(procedures: Procedures): Map<string, string> {
  const words = new Map<string, string>()
  for (const [name, { _def }] of Object.entries(procedures)) {
    const { rest } = _def.meta as { rest: RestMeta } // every procedure has one: see `operation`
    words.set(name, procedureWords(rest, procedures))
    // tRPC's types do not tell of which library these are, nor that there is an output.
    const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output?: z.ZodType }
    for (const input of inputs) addFields(words, `${name}.input`, jsonSchema(input, 'input'))
    if (output) addFields(words, `${name}.output`, jsonSchema(output, 'output'))
  }
  return words
}

function procedureWords(rest: RestMeta, procedures: Procedures): string {
  const { summary, description, deprecated } = rest
  const effect = 'creates' in rest ? 'adds' : 'repeatable' in rest ? 'changes' : undefined
  const repeatable = effect
    ? ` With \`{ context: { idempotencyKey } }\` a call can be repeated safely: the repetition ${effect} nothing and returns the first result.`
    : ''
  const text = `${summary}.\n\n${description}${repeatable}`
  const ending = deprecated
    ? `\n\n@deprecated It ends on ${longDate(deprecated.sunset)}: use \`GET ${deprecated.successor}\`.`
    : ''
  return inNames(text + ending, procedures)
}

/** A text in which REST's operations have the names of the procedures. */
const inNames = (text: string, procedures: Procedures): string =>
  Object.entries(procedures).reduce((changed, [name, { _def }]) => {
    const { method, path } = (_def.meta as { rest: RestMeta }).rest
    return changed.replaceAll(`\`${method} ${path}\``, `\`${name}\``)
  }, text)

const longDate = (date: Date): string =>
  date.toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' })

type JsonSchema = z.core.JSONSchema.BaseSchema

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' })

/** Adds what a schema says of the fields below a place, which those of the items of a list are, too. */
function addFields(
  words: Map<string, string>,
  place: string,
  schema: JsonSchema,
  definitions = schema.$defs ?? {},
): void {
  const id = schema.$ref?.split('/').at(-1)
  const definition = id === undefined ? undefined : definitions[id]
  for (const part of [definition, schema.items, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) {
    if (isSchema(part)) addFields(words, place, part, definitions)
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    if (!isSchema(field)) continue
    const text = fieldWords(field, definitions)
    if (text) words.set(`${place}.${name}`, text)
    addFields(words, `${place}.${name}`, field, definitions)
  }
}

const isSchema = (part: unknown): part is JsonSchema => typeof part === 'object' && part !== null

function fieldWords(field: JsonSchema, definitions: Record<string, JsonSchema>): string {
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
