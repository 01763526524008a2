/** The server on node:http that both hand-written peers share; they differ in their databases. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

const statuses = ['available', 'pending', 'sold']

export interface NewPet {
  name: string
  categoryId: number
  status: string
}

export interface Pet extends NewPet {
  id: number
}

type Given<Value> = Value | Promise<Value>

/** The three operations on a database. */
export interface Store {
  list(limit: number, status: string | undefined, cursor: number | undefined): Given<Pet[]>
  /** Returns the id of the new pet. */
  create(pet: NewPet): Given<number>
  get(id: number): Given<Pet | undefined>
}

/** Serves a store on the port and for the API key of the environment. */
export function serve(store: Store): void {
  const authorization = `Bearer ${process.env.API_KEY}`

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.headers.authorization !== authorization) return send(res, 401, error('UNAUTHORIZED'))
    const [path = '', query] = (req.url ?? '').split('?')
    if (path === '/v1/pets' && req.method === 'GET') {
      const parameters = new URLSearchParams(query)
      const limit = Number(parameters.get('limit') ?? 20)
      const status = parameters.get('status') ?? undefined
      const after = parameters.get('cursor')
      const cursor = after === null ? undefined : Number(after)
      if (!Number.isInteger(limit) || limit < 1 || limit > 100 || !isStatus(status)) {
        return send(res, 400, error('BAD_REQUEST'))
      }
      if (cursor !== undefined && !Number.isInteger(cursor)) {
        return send(res, 400, error('BAD_REQUEST'))
      }
      return send(res, 200, await store.list(limit, status, cursor))
    }
    if (path === '/v1/pets' && req.method === 'POST') {
      const pet = readPet(await readBody(req))
      if (!pet) return send(res, 400, error('BAD_REQUEST'))
      return send(res, 201, { id: await store.create(pet), ...pet })
    }
    const [, id] = /^\/v1\/pets\/(\d+)$/.exec(path) ?? []
    const pet = id !== undefined && req.method === 'GET' && (await store.get(Number(id)))
    return pet ? send(res, 200, pet) : send(res, 404, error('NOT_FOUND'))
  }

  createServer((req, res) => {
    answer(req, res).catch((thrown) => {
      console.error(thrown)
      send(res, 500, error('INTERNAL_SERVER_ERROR'))
    })
  }).listen(Number(process.env.PORT), '127.0.0.1')
}

function send(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  }
  res.writeHead(status, headers).end(text)
}

const error = (code: string) => ({ code, message: code })

function readBody(req: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    req.setEncoding('utf8')
    req.on('data', (chunk) => (text += chunk))
    req.on('end', () => resolve(text))
    req.on('error', reject)
  })
}

function readPet(text: string): NewPet | undefined {
  let body: Partial<Record<keyof NewPet, unknown>> | null
  try {
    body = JSON.parse(text)
  } catch {
    return undefined
  }
  const { name, categoryId, status = 'available' } = body ?? {}
  if (typeof name !== 'string' || name === '' || name.length > 255) return undefined
  if (typeof categoryId !== 'number' || !Number.isInteger(categoryId)) return undefined
  if (typeof status !== 'string' || !isStatus(status)) return undefined
  return { name, categoryId, status }
}

const isStatus = (status: string | undefined) => status === undefined || statuses.includes(status)
