/**
 * The operations of REST, each resolved once, at the start, from its procedure and what that says of
 * itself. The handler, the codec, the document, `Allow`, CORS and the names in log and metrics are
 * derived from it and from nothing else; an operation that is only half described stops the start.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import type { z } from 'zod'
import { sentence } from '../../errors/problem.ts'
import { isIdempotentWrite } from '../../procedure/idempotent-write.ts'
import { cursorOrderOf, pageOrderOf } from '../../procedure/paging.ts'
import type { RestMeta } from '../../procedure/rest-meta.ts'
import { isWrite } from '../../procedure/write.ts'
import { jsonReader, jsonWriter, type Kind, kindOf, textReader } from './codec.ts'
import { formOf, parametersOf, segmentsOf } from './routes.ts'

export type Operation = ReturnType<typeof resolve>

/** What tRPC keeps of a procedure, but declares on its internal types only. */
interface Definition {
  meta?: { rest?: RestMeta }
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver: object
}

/**
 * Every procedure of a router as an operation; `tags` says what is under each heading. Throws TypeError
 * for one that is half described.
 */
export function operationsOf(router: AnyTRPCRouter, tags: Record<string, string>): Operation[] {
  const procedures: Record<string, AnyTRPCProcedure> = router._def.procedures
  const operations = Object.entries(procedures).map(([name, procedure]) =>
    resolve(name, procedure, tags),
  )
  checkPaths(operations)
  return operations
}

/**
 * Two operations at one path have different methods and name its parameters alike (OpenAPI 3.1 calls
 * other templates of its form identical, and forbids them); what is created is at a path that is served.
 */
function checkPaths(operations: Operation[]): void {
  const forms = Map.groupBy(operations, ({ path }) => formOf(path))
  for (const [form, [first, ...others]] of forms) {
    const different = others.find(({ path }) => path !== first?.path)
    if (different) {
      const names = `${different.name} and ${first?.name} name its parameters differently`
      throw new TypeError(`${different.path} and ${first?.path} are the same path: ${names}`)
    }
    for (const [method, [one, other]] of Map.groupBy(
      forms.get(form) ?? [],
      ({ method }) => method,
    )) {
      if (other)
        throw new TypeError(`${other.name} and ${one?.name} are both at ${method} ${one?.path}`)
    }
  }
  for (const { name, creates } of operations) {
    if (creates === undefined || forms.has(formOf(creates))) continue
    throw new TypeError(`The procedure ${name} creates ${creates}, a path that no procedure has`)
  }
}

function resolve(name: string, procedure: AnyTRPCProcedure, tags: Record<string, string>) {
  const { meta, inputs, output, resolver } = procedure._def as unknown as Definition
  const rest = meta?.rest
  const wrong = (what: string) => new TypeError(`The procedure ${name} ${what}`)
  if (!rest) throw wrong('needs .meta(restMeta({ … })), which says where REST has it')
  const heading = tags[rest.tag]
  if (heading === undefined) throw new TypeError(`The tag ${rest.tag} needs a description`)
  const [input] = inputs
  if (!input || inputs.length > 1) throw wrong('needs exactly one .input(…)')
  if (!output) throw wrong('needs an .output(…), because only what that names may go out')
  const isQuery = rest.method === 'GET'
  if (isQuery !== (procedure._def.type === 'query')) {
    throw wrong(`is a ${procedure._def.type}, which is not what ${rest.method} stands for`)
  }

  const inputKind = kindOf(input, 'input', `The input of ${name}`)
  if (inputKind.type !== 'object') throw wrong('needs an object as its input')
  const fields = new Map(inputKind.fields)
  const inPath = parametersOf(segmentsOf(rest.path))
  const strange = inPath.find((field) => !fields.has(field))
  if (strange) throw wrong(`has {${strange}} in its path, which its input lacks`)
  const others = inputKind.fields.filter(([field]) => !inPath.includes(field))
  const hasBody = !isQuery && rest.method !== 'DELETE' && others.length > 0
  const bodyName = input.meta()?.id
  if (hasBody && !bodyName) throw wrong('needs an id for its input: the name of its schema')

  const outputKind = kindOf(output, 'output', `The output of ${name}`)
  const gives = outputKind.type !== 'nothing'
  if (gives === (rest.method === 'DELETE')) {
    throw wrong(gives ? 'is a DELETE: its output must be z.void()' : 'must have an output')
  }
  const pagedMeta = 'paged' in rest
  const order = pageOrderOf(resolver)
  if (pagedMeta !== (order !== undefined))
    throw wrong('must say `paged` and use paged(…), or neither')
  if (pagedMeta && !(fields.has('limit') && fields.has('cursor') && outputKind.type === 'list')) {
    throw wrong('is paged: it needs `limit` and `cursor` in its input, and a list as its output')
  }
  if (order !== cursorOrderOf(input)) {
    throw wrong('must have the same order in paged(…) and in the pagingInputs(…) of its input')
  }
  const creates = 'creates' in rest ? rest.creates : undefined
  const takesKey = creates !== undefined || ('repeatable' in rest && rest.repeatable === true)
  if (takesKey !== isIdempotentWrite(resolver)) {
    throw wrong('must say `creates` or `repeatable` and use idempotentWrite(…), or neither')
  }
  if (isQuery === isWrite(resolver)) {
    throw wrong(
      isQuery
        ? 'is a query, which must not write: its resolver is not made by write(…) or idempotentWrite(…)'
        : 'is a mutation: its resolver must be made by write(…) or idempotentWrite(…), which write as a whole or not at all',
    )
  }

  if (rest.deprecated && parametersOf(segmentsOf(rest.deprecated.successor)).length > 0) {
    throw wrong(`has ${rest.deprecated.successor} as its successor: a path without parameters`)
  }

  const write = jsonWriter(outputKind)
  const exampleOutput = 'example' in rest ? rest.example : undefined
  if (gives) check(output, exampleOutput, `The example of ${name}`)
  for (const field of creates === undefined ? [] : parametersOf(segmentsOf(creates))) {
    if (inPath.includes(field) || isAlwaysIn(output, outputKind, exampleOutput, field)) continue
    throw wrong(
      `has {${field}} in what it creates: a field that is always in its output, or one of its path`,
    )
  }
  const read = jsonReader({ type: 'object', fields: others })
  if (hasBody !== 'exampleInput' in rest) {
    throw wrong(hasBody ? 'needs an exampleInput: a body' : 'has an exampleInput, but no body')
  }
  if ('exampleInput' in rest) {
    const body = read(rest.exampleInput) as object
    check(input, body, `The example of the input of ${name}`, inPath)
  }

  const readers = (of: [string, Kind][]) =>
    new Map(of.map(([field, kind]) => [field, textReader(kind, `${field} of ${name}`)]))
  const status: 200 | 201 | 204 = creates === undefined ? (gives ? 200 : 204) : 201
  return {
    /** The name of the procedure, which is the operationId too. */
    name,
    procedure,
    method: rest.method,
    /** As in the OpenAPI document: `/pets/{petId}`. */
    path: rest.path,
    /** The fields of the input that the path and the query hold, by name. */
    pathParameters: readers(inPath.map((field) => [field, fields.get(field) as Kind])),
    queryParameters: readers(hasBody ? [] : others),
    /** Reads a JSON body; undefined where there is none. */
    readBody: hasBody ? read : undefined,
    /** The status of a success. */
    status,
    write,
    paged: pagedMeta,
    /** The path of what was created, as a template. */
    creates,
    /** Whether it takes an Idempotency-Key. */
    takesKey,
    deprecated: rest.deprecated,
    input,
    /** The name of the body's schema in the document. */
    bodyName,
    meta: rest,
    /** What is under the heading that the operation has in the document. */
    heading,
    /** What an error of the input is like, for the document. */
    badRequest: hasBody
      ? badBody(input, others, inPath)
      : badParameter(input, [...inPath, ...others.map(([field]) => field)]),
    /** The example of the output, as it is answered. */
    example: gives ? (JSON.parse(write(output.parse(exampleOutput))) as unknown) : undefined,
  }
}

function check(schema: z.ZodType, value: unknown, what: string, except?: string[]): void {
  const refusal = refusalOf(schema, value, (field) => !except?.includes(field))
  if (refusal) throw new TypeError(`${what} does not fit its schema: ${refusal}`)
}

/** The words in which a schema refuses those fields of a value that count; undefined where it does not. */
function refusalOf(
  schema: z.ZodType,
  value: unknown,
  counts: (field: string) => boolean,
): string | undefined {
  const issues = schema.safeParse(value).error?.issues.filter(({ path }) => counts(String(path[0])))
  return issues?.length ? sentence({ issues }) : undefined
}

/** Whether what a schema gives always has a field, and one that a path can hold. */
function isAlwaysIn(output: z.ZodType, kind: Kind, example: unknown, field: string): boolean {
  const type = kind.type === 'object' && new Map(kind.fields).get(field)?.type
  if (!type || ['nothing', 'list', 'object', 'nullable'].includes(type)) return false
  const { success, data } = output.safeParse({ ...(example as object), [field]: undefined })
  return !success || (data as Record<string, unknown>)[field] !== undefined
}

/** What a wrong body is told: that it is empty or, where it may be, that a field is a list. */
function badBody(input: z.ZodType, others: [string, Kind][], inPath: string[]): string {
  const isBody = (field: string) => !inPath.includes(field)
  const [more = ''] = others[0] ?? []
  return (
    refusalOf(input, {}, isBody) ??
    refusalOf(input, { [more]: [] }, isBody) ??
    'The body must be a JSON object'
  )
}

/** What a wrong parameter is told: the first that refuses `x`, or else the Host. */
function badParameter(input: z.ZodType, fields: string[]): string {
  const refusals = fields.map((field) =>
    refusalOf(input, { [field]: 'x' }, (other) => other === field),
  )
  return (
    refusals.find((refusal) => refusal !== undefined) ??
    'The request must have one valid Host header'
  )
}
