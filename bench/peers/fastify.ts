/** The server of Fastify, with its JSON schemas for requests and responses: its peers differ in their databases. */
import { fastify } from 'fastify'
import type { NewPet, Store } from './by-hand.ts'

const authorization = `Bearer ${process.env.API_KEY}`

const status = { type: 'string', enum: ['available', 'pending', 'sold'] }
const fields = {
  name: { type: 'string', minLength: 1, maxLength: 255 },
  categoryId: { type: 'integer' },
}
const pet = {
  type: 'object',
  properties: { id: { type: 'integer' }, ...fields, status },
}
const newPet = {
  type: 'object',
  required: ['name', 'categoryId'],
  properties: { ...fields, status: { ...status, default: 'available' } },
}
const query = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    cursor: { type: 'integer' },
    status,
  },
}

/** Serves a store on the port and for the API key of the environment. */
export async function serve(store: Store): Promise<void> {
  const app = fastify()

  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.authorization === authorization) return
    return reply
      .code(401)
      .send({ code: 'UNAUTHORIZED', message: 'The API key is missing or invalid' })
  })

  app.get<{ Querystring: { limit: number; cursor?: number; status?: string } }>(
    '/v1/pets',
    { schema: { querystring: query, response: { 200: { type: 'array', items: pet } } } },
    async ({ query: { limit, status, cursor } }) => store.list(limit, status, cursor),
  )

  app.post<{ Body: NewPet }>(
    '/v1/pets',
    { schema: { body: newPet, response: { 201: pet } } },
    async ({ body }, reply) => {
      reply.code(201)
      return { id: await store.create(body), ...body }
    },
  )

  app.get<{ Params: { petId: number } }>(
    '/v1/pets/:petId',
    {
      schema: {
        params: { type: 'object', properties: { petId: { type: 'integer' } } },
        response: { 200: pet },
      },
    },
    async ({ params: { petId } }, reply) => {
      const found = await store.get(petId)
      return (
        found ?? reply.code(404).send({ code: 'NOT_FOUND', message: 'There is no such animal' })
      )
    },
  )

  await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
}
