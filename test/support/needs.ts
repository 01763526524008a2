/** What a call needs before it can succeed: resources, made by the operations that create them, by their examples. */

import type { RestMeta } from '../../src/procedure/meta.ts'
import type { Operation } from '../../src/procedure/operation.ts'
import type { RestClient } from './rest.ts'

/** An operation that REST has. */
export type Described = Operation & { rest: RestMeta }

/** What makes resources: all operations, and a client. */
interface Makers {
  described: Described[]
  client: RestClient
}

/** The path parameters of what was made, by their names: the resources of one call belong to one another. */
type Made = Record<string, string>

export const PARAMETER = /\{\w+\}/g
const placeOf = (path: string) => path.replaceAll(PARAMETER, '{}')

/** The headers of a good call. */
export const headersFor = ({ access: { headers = {} } }: Operation) => ({
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, { example }]) => [name, example]),
  ),
})

/** The id of a resource that does not exist. */
export const NO_ID = 404

/**
 * Returns the path and the body of a call that succeeds. Its path, and the ids of its body, name new resources in the
 * state that it needs. With `isMissing`, the ids of the body are those of no resource.
 */
export async function newCall(
  makers: Makers,
  operation: Described,
  { made = {}, isMissing = false }: { made?: Made; isMissing?: boolean } = {},
): Promise<{ path: string; body?: object }> {
  const { path, exampleInput, after } = operation.rest
  const filled = await pathFor(makers, path, made)
  if (!exampleInput) {
    if (after) await callFirst(makers, after, made)
    return { path: filled }
  }
  const body = await withIds(makers, uniqueBody(operation), '', isMissing ? undefined : made)
  if (after) await callFirst(makers, after, made)
  return { path: filled, body: body as object } // as the example
}

/** Calls the procedure that comes before another one, on the resources that were made for that one. */
async function callFirst(makers: Makers, name: string, made: Made): Promise<void> {
  const first = makers.described.find((operation) => operation.name === name)
  if (!first) throw new Error(`No procedure has the name ${name}`)
  if (first.rest.after) await callFirst(makers, first.rest.after, made)
  const { method, path, exampleInput } = first.rest
  const body = exampleInput && (await withIds(makers, uniqueBody(first), '', made))
  const init = { ...(body !== undefined && { body }), ...headersFor(first) }
  const answer = await makers.client(method, fill(path, made), init)
  if (answer.status >= 300) throw new Error(`The example of ${name} is refused: ${answer.text}`)
}

/** The last resource of a template that ends in a parameter, such as `/pets/{petId}`. */
const LAST = /\/[^/]+\/\{\w+\}$/

/**
 * Returns the path of a resource that was created for this template, with what it belongs to. Where no operation
 * creates what is there, it is a relation of two resources, which are created for themselves.
 */
async function newPath(makers: Makers, template: string, made: Made): Promise<string> {
  const end = template.lastIndexOf('}') + 1
  const whole = template.slice(0, end)
  if (end === 0) return template
  const creation = creatorOf(makers, whole)
  if (!creation) {
    const { 0: last = '', index = 0 } = LAST.exec(whole) ?? {}
    if (index === 0) throw new Error(`No operation creates ${whole}`)
    const parent = await pathFor(makers, whole.slice(0, index), made)
    return parent + (await newPath(makers, last, made)) + template.slice(end)
  }
  const { path: parent, body } = await newCall(makers, creation, { made })
  const init = { ...(body && { body }), ...headersFor(creation) }
  const { headers, status, text } = await makers.client('POST', parent, init)
  if (status !== 201) throw new Error(`The example of ${creation.name} is refused: ${text}`)
  const path = new URL(headers.get('location') ?? '').pathname.replace(/^.*\/v1(?=\/)/, '')
  const values = path.split('/')
  for (const [at, part] of whole.split('/').entries()) {
    if (part.startsWith('{')) made[part.slice(1, -1)] = values[at] ?? ''
  }
  return path + template.slice(end)
}

/** Returns the path for a template, whose resources may have been made for the same call already. */
async function pathFor(makers: Makers, template: string, made: Made): Promise<string> {
  const names = template.match(PARAMETER) ?? []
  const isMade = names.every((name) => name.slice(1, -1) in made)
  return isMade ? fill(template, made) : await newPath(makers, template, made)
}

const fill = (template: string, made: Made): string =>
  template.replaceAll(PARAMETER, (name) => made[name.slice(1, -1)] ?? name)

const creatorOf = ({ described }: Makers, template: string): Described | undefined =>
  described.find(({ rest }) => rest.creates && placeOf(rest.creates) === placeOf(template))

/**
 * Returns a value of a body with the ids of new resources, which the fields name, such as `petId` and `petIds`, also
 * in objects and lists; without `made`, with those of no resource.
 */
async function withIds(
  makers: Makers,
  value: unknown,
  field: string,
  made: Made | undefined,
): Promise<unknown> {
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) {
      items.push(await withIds(makers, item, field.replace(/s$/, ''), made))
    }
    return items
  }
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    const copy: Record<string, unknown> = {}
    for (const [name, item] of Object.entries(value)) {
      copy[name] = await withIds(makers, item, name, made)
    }
    return copy
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') return value
  const template = makers.described
    .map(({ rest }) => rest.path)
    .find((path) => path.endsWith(`/{${field}}`) && creatorOf(makers, path))
  if (!template) return value
  if (!made) return NO_ID + ++missing
  return Number((await newPath(makers, template, made)).split('/').at(-1))
}

/** A list without duplicates needs another id for each place. */
let missing = 10_000_000

let serial = 0

/** Returns a body like the example, whose texts are unique where its schema lets them be. */
function uniqueBody({ input, rest }: Described): object {
  const body: Record<string, unknown> = { ...rest.exampleInput }
  const mark = ++serial
  for (const [field, value] of Object.entries(body)) {
    if (typeof value !== 'string') continue
    const isValid = (text: string) => {
      const issues = input.safeParse({ ...body, [field]: text }).error?.issues ?? []
      return !issues.some(({ path: [first] }) => first === field)
    }
    body[field] = [`${value} ${mark}`, `${mark}${value}`].find(isValid) ?? value
  }
  return body
}
