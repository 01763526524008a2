/** All animals, or those of one status, page after page as one scrolls. */

import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Nothing } from './Nothing.tsx'
import { Page } from './Page.tsx'
import { PetCard, Placeholders } from './PetCard.tsx'
import { useTRPC } from './petstore.ts'
import { go, links, statuses } from './route.ts'
import { statusNames } from './shop.ts'
import { isInTrouble, Trouble } from './Trouble.tsx'

/** Animals asked for at a time: whole rows of the grid, whether it has 2, 3 or 4 columns. */
const PAGE_SIZE = 24

/** Animals that come by themselves as one scrolls. Then one asks for more, or reads the footer. */
const UNASKED = 4 * PAGE_SIZE

export function Catalogue({ filter }: { filter: PetStatus | undefined }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.listPets.infiniteQueryOptions(
      { limit: PAGE_SIZE, ...(filter && { status: filter }) },
      // The next page begins after the last animal seen; a page that is not full is the last.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
    ),
  )
  // Read here, not when it is needed: so each change of it renders, and looks again what is near.
  const { isFetching } = query
  const pets = query.data?.pages.flat()

  return (
    <Page title="Our animals">
      <Filter chosen={filter} />
      {query.isPending && !isInTrouble(query) && (
        <ul className="grid" aria-label="Loading the animals" aria-busy="true">
          <Placeholders count={8} />
        </ul>
      )}
      {pets?.length === 0 && (
        <Nothing>
          <p>
            {filter ? `No animal is ${lowerCase(filter)} right now.` : 'There is no animal yet.'}
          </p>
          {filter && (
            <a className="button" href={links.catalogue()}>
              See all animals
            </a>
          )}
        </Nothing>
      )}
      {pets && pets.length > 0 && (
        <>
          <ul className="grid" aria-busy={query.isFetchingNextPage}>
            {pets.map((pet) => (
              <li key={String(pet.id)}>
                <PetCard pet={pet} filter={filter} />
              </li>
            ))}
            {query.isFetchingNextPage && !isInTrouble(query) && <Placeholders count={4} />}
          </ul>
          <footer className="end">
            <p role="status">{count(pets.length, filter, query.hasNextPage)}</p>
            {query.hasNextPage && (
              <button
                type="button"
                className="quiet"
                ref={whenNear(() => {
                  if (!isFetching && pets.length % UNASKED > 0) void query.fetchNextPage()
                })}
                onClick={() => void query.fetchNextPage()}
              >
                {query.isFetchingNextPage ? 'Loading…' : 'Show more'}
              </button>
            )}
          </footer>
        </>
      )}
      {/* At the end, where the animals that are missing would be. */}
      <Trouble query={query} />
    </Page>
  )
}

function Filter({ chosen }: { chosen: PetStatus | undefined }) {
  return (
    <fieldset className="filter">
      <legend>Show</legend>
      {[undefined, ...statuses].map((status) => (
        <label key={status ?? 'all'}>
          <input
            type="radio"
            name="status"
            value={status ?? 'all'}
            checked={status === chosen}
            onChange={() => go(links.catalogue(status))}
          />
          <span>{status ? statusNames[status] : 'All'}</span>
        </label>
      ))}
    </fieldset>
  )
}

const lowerCase = (status: PetStatus) => statusNames[status].toLowerCase()

function count(shown: number, filter: PetStatus | undefined, more: boolean): string {
  const kind = filter ? `${lowerCase(filter)} ` : ''
  if (more) return `${shown} ${kind}animals so far`
  return shown === 1 ? `One ${kind}animal in all` : `${shown} ${kind}animals in all`
}

/** A ref that calls `act` when the element is about to be scrolled into view. */
function whenNear(act: () => void) {
  return (element: Element | null) => {
    if (!element) return
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && act(), {
      rootMargin: '600px',
    })
    observer.observe(element)
    return () => observer.disconnect()
  }
}
