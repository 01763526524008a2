/** The cases of REST and of tRPC: the requests to the servers. */
import type { Codec } from './service.ts'

/** The number of pets before the first creation; their ids begin with 1. */
export const PETS = 100_000

/** The default number of concurrent connections. */
const CONNECTIONS = 32

/** Returns an integer from 0 to `below` − 1. */
export type Random = (below: number) => number

export interface Request {
  path: string
  /** The body of a creation; every other request is a GET. */
  body?: string
}

export interface Case {
  /** Its name on the command line. */
  id: string
  title: string
  request(random: Random, codec: Codec): Request
  /** The pets of the response, in a form that is comparable between servers. */
  read(body: never, codec: Codec): unknown
  connections: number
  /** Whether some of the requests create pets. */
  creates: boolean
  /** Whether each creation has its own Idempotency-Key, on servers that support it. */
  isKeyed: boolean
  /** Whether all requests are equal, so that concurrent ones may share a result. */
  isEqual: boolean
}

const shared = { connections: CONNECTIONS, creates: false, isKeyed: false, isEqual: false }
const withoutId = (pet: object) => ({ ...pet, id: undefined })
const rest = { ...shared, read: (pets: unknown) => pets }
const creating = { ...shared, creates: true, read: withoutId }

const create = (random: Random): Request => ({
  path: '/v1/pets',
  body: JSON.stringify(randomPet(random)),
})

/** The cases of REST on a database with this number of pets before the first creation. */
export function restCases(pets = PETS): Case[] {
  const get = (random: Random): Request => ({ path: `/v1/pets/${1 + random(pets)}` })
  const page = (random: Random): Request => ({ path: `/v1/pets?limit=20&cursor=${random(pets)}` })
  const list = () => ({ path: '/v1/pets' })
  return [
    { ...rest, id: 'listPets', title: 'list 20', isEqual: true, request: list },
    {
      ...rest,
      id: 'listPetsByStatus',
      title: 'list 100 by status',
      isEqual: true,
      request: () => ({ path: '/v1/pets?status=available&limit=100' }),
    },
    { ...rest, id: 'getPet', title: 'getPet, random', request: get },
    { ...creating, id: 'createPet', title: 'createPet', request: create },
    { ...rest, id: 'page', title: 'page of 20 at a random cursor', request: page },
    {
      ...rest,
      id: 'filteredPage',
      title: 'page of 20 of one status at a random cursor',
      request: (random) => ({ path: `${page(random).path}&status=${randomStatus(random)}` }),
    },
    {
      ...creating,
      id: 'mixture',
      title: 'seven getPet, two pages at random cursors, one createPet',
      request(random) {
        const chance = random(10)
        return chance < 7 ? get(random) : chance < 9 ? page(random) : create(random)
      },
    },
    { ...creating, id: 'keyedCreate', title: 'createPet, keyed', isKeyed: true, request: create },
    { ...rest, id: 'alone.listPets', title: 'alone: list 20', connections: 1, request: list },
    { ...rest, id: 'alone.getPet', title: 'alone: getPet', connections: 1, request: get },
    {
      ...creating,
      id: 'alone.createPet',
      title: 'alone: createPet',
      connections: 1,
      request: create,
    },
  ]
}

type Call = { result: { data: never } }

const trpc = {
  ...shared,
  read: (calls: Call | Call[], { decode }: Codec) =>
    [calls].flat().map(({ result }) => decode(result.data)),
}

export const trpcCases: Case[] = [
  {
    ...trpc,
    id: 'trpc.getPet',
    title: 'getPet',
    request: (random, { encode }) => ({
      path: `/trpc/getPet?input=${json(encode({ petId: 1 + random(PETS) }))}`,
    }),
  },
  {
    ...trpc,
    id: 'trpc.listPets',
    title: 'listPets',
    isEqual: true,
    request: (_random, { encode }) => ({
      path: `/trpc/listPets?input=${json(encode({ limit: 20 }))}`,
    }),
  },
  {
    ...trpc,
    id: 'trpc.getPet10',
    title: 'batch of ten getPet',
    request(random, { encode }) {
      const inputs = Array.from({ length: 10 }, () => encode({ petId: 1 + random(PETS) }))
      const names = inputs.map(() => 'getPet')
      return { path: `/trpc/${names}?batch=1&input=${json(Object.fromEntries(inputs.entries()))}` }
    },
  },
]

const json = (value: unknown) => encodeURIComponent(JSON.stringify(value))

const STATUSES = ['available', 'available', 'available', 'pending', 'sold']

const randomStatus = (random: Random) => STATUSES[random(5)] ?? 'available'

/** A new pet in one of 50 categories; three of five are available. */
export function randomPet(random: Random): { name: string; categoryId: number; status: string } {
  const name = `Pet ${random(10 ** (2 + random(10)))}`
  return { name, categoryId: 1 + random(50), status: randomStatus(random) }
}

/** A repeatable generator, so that every server has the same data and the same requests. */
export function repeatable(): Random {
  let state = 1
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
