/** What the pages ask the service for, and what the lists in the cache know before it answers. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import type { InfiniteData, QueryClient } from '@tanstack/react-query'
import type { useTRPC } from './petstore.ts'

type Trpc = ReturnType<typeof useTRPC>

/** Animals asked for at a time: whole rows of the grid, whether it has 2, 3 or 4 columns. */
const PAGE_SIZE = 48

/** How many animals more the page of one shows: one row, on a wide screen. */
const MORE = 4

/** The animals of one status, or all, page by page. */
export const catalogue = (trpc: Trpc, status: PetStatus | undefined) =>
  trpc.listPets.infiniteQueryOptions(
    { limit: PAGE_SIZE, ...(status && { status }) },
    // The next page begins after the last animal seen; a page that is not full is the last.
    { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
  )

/** The input of listPets that returns one animal: getPet is deprecated and ends in 2030. */
export const onlyPet = (id: bigint) => ({ cursor: id - 1n, limit: 1 })

/** One animal: what a list knows of it, until the service has answered. */
export const onePet = (trpc: Trpc, queryClient: QueryClient, id: bigint) =>
  trpc.listPets.queryOptions(onlyPet(id), {
    placeholderData() {
      const pages = queryClient
        .getQueriesData<InfiniteData<Pet[]>>(trpc.listPets.infiniteQueryFilter())
        .flatMap(([, data]) => data?.pages ?? [])
      const rows = queryClient
        .getQueriesData<Pet[]>(trpc.listPets.queryFilter())
        .map(([, data]) => data ?? [])
      const pet = [...pages, ...rows].flat().find((known) => known.id === id)
      return pet && [pet]
    },
  })

/** The animals that come next in the catalogue: those that its list knows, until the service has answered. */
export const nextPets = (
  trpc: Trpc,
  queryClient: QueryClient,
  after: bigint,
  status: PetStatus | undefined,
) =>
  trpc.listPets.queryOptions(
    { cursor: after, limit: MORE, ...(status && { status }) },
    {
      placeholderData: () =>
        queryClient
          .getQueryData(catalogue(trpc, status).queryKey)
          ?.pages.flat()
          .filter((pet) => pet.id > after)
          .slice(0, MORE),
    },
  )
